# Source this (bash) to work in the checkout: `. scripts/env.sh`. It starts nothing and may be sourced twice.
trace_memory_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
. "$trace_memory_root/.venv/bin/activate"

# Without a sourced ROS 2, the wheels in the virtual environment are the underlay.
if [ -d "$VIRTUAL_ENV/share/ament_cmake" ]; then
  export AMENT_PREFIX_PATH="$VIRTUAL_ENV" CMAKE_PREFIX_PATH="$VIRTUAL_ENV"
fi
if [ -f "$trace_memory_root/install/setup.bash" ]; then
  case $- in *u*) trace_memory_nounset=1 ;; *) trace_memory_nounset= ;; esac
  set +u # colcon's scripts read variables that may be unset
  . "$trace_memory_root/install/setup.bash"
  if [ -n "$trace_memory_nounset" ]; then set -u; fi
  unset trace_memory_nounset
fi
# The checkout's Python comes before the installed copy, so that an edit needs no build.
export PYTHONPATH="$trace_memory_root${PYTHONPATH:+:$PYTHONPATH}"

# A renderer without a GPU, room for raw pictures (as trace_memory_ros/nodes/transport.py has it), and messages within
# this machine (config/network/loopback.xml says why not LOCALHOST).
export MUJOCO_GL="${MUJOCO_GL:-egl}"
if [ "${ROS_DISTRO:-}" = jazzy ]; then
  export FASTDDS_BUILTIN_TRANSPORTS="${FASTDDS_BUILTIN_TRANSPORTS:-LARGE_DATA?sockets_size=4MB}"
else
  export FASTDDS_BUILTIN_TRANSPORTS="${FASTDDS_BUILTIN_TRANSPORTS:-LARGE_DATA}"
fi
if [ -z "${ROS_AUTOMATIC_DISCOVERY_RANGE:-}${FASTDDS_DEFAULT_PROFILES_FILE:-}${FASTRTPS_DEFAULT_PROFILES_FILE:-}" ]; then
  case "${RMW_IMPLEMENTATION:-rmw_fastrtps_cpp}" in
    *fastrtps*)
      export ROS_AUTOMATIC_DISCOVERY_RANGE=SYSTEM_DEFAULT
      if [ "${ROS_DISTRO:-}" = jazzy ]; then trace_memory_fast=FASTRTPS; else trace_memory_fast=FASTDDS; fi
      export "${trace_memory_fast}_DEFAULT_PROFILES_FILE=$trace_memory_root/config/network/loopback.xml"
      unset trace_memory_fast
      ;;
    *) export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST ;;
  esac
fi
# Each process is small; four of them with a thread per core each only wait for one another.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
unset trace_memory_root
