#!/usr/bin/env bash
# Everything before the build: system packages, .venv, pinned Python packages. Running it again costs a second.
# PYTHON=... picks the interpreter of .venv.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Rendering without a screen: MuJoCo through EGL on Mesa's software renderer.
system_packages=(libegl1 libgl1-mesa-dri libgles2 libopengl0)
stamp="$venv/trace_memory_setup"

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo none; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11}; do
    if [ "$(ros_mode "$candidate")" = system ]; then
      case "$(python_version "$candidate")" in 3.11 | 3.12 | 3.13) command -v "$candidate" && return ;; esac
    elif [ "$(python_version "$candidate")" = 3.11 ]; then
      command -v "$candidate" && return
    fi
  done
  fail "no usable Python: ${PYTHON:-python3} is $(python_version "${PYTHON:-python3}"), and 3.11 is needed without a sourced ROS 2" \
    "install Python 3.11 (Debian 12: apt-get install python3 python3-venv python3-dev), or name one: make PYTHON=/path/to/python3.11, or source a ROS 2 Jazzy or Kilted first"
}

# Debian packages that stand for what is missing, one per line.
missing_packages() {
  local package
  for package in "${system_packages[@]}"; do
    dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' || echo "$package"
  done
  command -v cc >/dev/null || echo gcc
  command -v c++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v make >/dev/null || echo make
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  "$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    echo python3-dev
}

check_tools_without_apt() {
  command -v cc >/dev/null && command -v c++ >/dev/null ||
    fail "no C and C++ compiler (cc, c++)" "install gcc and g++ with this system's package manager"
  command -v cmake >/dev/null || fail "no cmake" "install cmake 3.20 or newer with this system's package manager"
  "$python" -c 'import ctypes.util, sys; sys.exit(ctypes.util.find_library("EGL") is None)' ||
    fail "no EGL library" "install Mesa's EGL and software renderer with this system's package manager"
}

install_system_packages() {
  if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
    check_tools_without_apt
    return
  fi
  local missing
  missing="$(missing_packages | tr '\n' ' ')"
  [ -n "$missing" ] || return 0
  say "installing Debian packages: $missing"
  [ "$(id -u)" = 0 ] ||
    fail "Debian packages are missing and this user is not root: $missing" "sudo apt-get update && sudo apt-get install -y $missing"
  # shellcheck disable=SC2086
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing ||
    fail "apt-get could not install: $missing" "check the network, the clock and apt's sources, then run this again (apt's own message is above)"
}

make_venv() {
  local options=()
  if [ "$mode" = system ]; then options=(--system-site-packages); fi
  # An environment of another interpreter or of the other mode cannot be turned into this one.
  if [ -d "$venv" ] && [ "$(cat "$venv/trace_memory_kind" 2>/dev/null || echo "$kind")" != "$kind" ]; then
    say "replacing .venv, which was made for another Python or another ROS 2"
    rm -rf "$venv" build install log
  fi
  if [ ! -x "$venv/bin/python" ]; then
    say "making .venv with $("$python" --version) ($mode ROS 2)"
    "$python" -m venv "${options[@]}" "$venv" ||
      fail "python -m venv failed" "install it (Debian: apt-get install python3-venv), remove .venv and run this again"
  fi
  printf '%s\n' "$kind" >"$venv/trace_memory_kind"
}

# Counts packages in pip's output, one line for every twenty.
show_progress() {
  local line count=0
  while IFS= read -r line; do
    case "$line" in
      Collecting*)
        count=$((count + 1))
        if [ $((count % 20)) = 0 ]; then say "  $count packages collected"; fi
        ;;
      "Installing collected"*) say "  $count packages collected, installing them" ;;
    esac
  done
}

# pip's complaints are shown only if it fails.
pip_install() {
  local complaints
  complaints="$(mktemp)"
  if ! "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>"$complaints" | show_progress; then
    grep -v '^WARNING' "$complaints" >&2 || true
    rm -f "$complaints"
    fail "pip could not install: $*" \
      "pip's own message is above. No connection, or no version found or conflicts where none should be: check the network, any proxy and pip's configuration. A failed compilation: install gcc, g++ and Python's headers. No space: 4 GB are needed. Then run this again: it goes on where it stopped"
  fi
  rm -f "$complaints"
}

install_python_packages() {
  local ros=() lock=(-c requirements/lock.txt)
  if [ "$mode" = wheels ]; then
    ros=(-r requirements/arrays.txt -r requirements/ros.txt -r requirements/colcon.txt)
  else
    lock=()
    "$venv/bin/python" -c 'import cv2' 2>/dev/null ||
      fail "ROS 2 $ROS_DISTRO is sourced, but its Python has no OpenCV" "sudo apt-get install -y python3-opencv"
    # What is installed was compiled against the installation's numpy: nothing may replace it.
    printf 'numpy==%s\n' "$("$venv/bin/python" -c 'import numpy; print(numpy.__version__)')" >"$venv/numpy.txt"
    lock=(-c "$venv/numpy.txt")
    if ! command -v colcon >/dev/null; then ros=(-r requirements/colcon.txt); fi
  fi
  say "installing pinned Python packages (1-3 minutes the first time)"
  pip_install "${lock[@]}" -r requirements/core.txt -r requirements/sim.txt -r requirements/diffusion.txt \
    -r requirements/video.txt -r requirements/vision.txt -r requirements/timm.txt -r requirements/dev.txt "${ros[@]}"
  say "installing signature libraries, the tests' oracle (compiles for half a minute the first time)"
  pip_install "${lock[@]}" --no-build-isolation -r requirements/peers.txt
  if [ "$mode" = wheels ]; then
    say "pointing the ROS wheels at this Python"
    "$venv/bin/python" scripts/patch_ros_wheels.py
  fi
}

python="$(find_python)"
mode="$(ros_mode "$python")"
if [ "$mode" = system ]; then
  case "$ROS_DISTRO" in
    jazzy | kilted) ;;
    *) say "ROS 2 $ROS_DISTRO is sourced; Jazzy and Kilted are what this package is made for" ;;
  esac
fi
kind="$mode $("$python" -c 'import sys; print(sys.version.split()[0], sys.base_prefix)') ${ROS_DISTRO:-}"
key="$(cat requirements/*.txt scripts/setup.sh scripts/patch_ros_wheels.py | cksum) $kind"
if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then exit 0; fi

if [ "$mode" = wheels ] && [ -n "${ROS_DISTRO:-}" ]; then
  say "ROS_DISTRO is $ROS_DISTRO, but $python cannot import rclpy: installing ROS 2 as wheels instead"
fi
install_system_packages
make_venv
install_python_packages
printf '%s\n' "$key" >"$stamp"
say "set-up is complete"
