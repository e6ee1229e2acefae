# Shared by the scripts of this folder: where things are, how they speak, which ROS 2 they use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv="$PWD/.venv"

say() { printf '== %s\n' "$*" >&2; }

# fail WHAT REMEDY
fail() {
  printf '\nerror: %s\n  remedy: %s\n' "$1" "$2" >&2
  exit 1
}

# "system" where a ROS 2 installation is sourced and its rclpy can be imported, otherwise "wheels".
ros_mode() {
  if [ -n "${ROS_DISTRO:-}" ] && "$1" -c 'import rclpy' 2>/dev/null; then echo system; else echo wheels; fi
}
