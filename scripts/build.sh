#!/usr/bin/env bash
# colcon build of this package into build/ and install/; does nothing while nothing it depends on has changed.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stamp=build/trace_memory_build

# --symlink-install makes an edited file visible at once: only messages, build files and the list of files count.
key() {
  cat "$venv/trace_memory_setup" CMakeLists.txt package.xml cmake/* msg/* | cksum
  local folder
  for folder in trace_memory_ros config docs launch resource weights; do
    if [ -d "$folder" ]; then find "$folder" -type f -not -name '*.pyc'; fi
  done | sort | cksum
  pwd
}

if [ -f install/setup.bash ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(key)" ]; then exit 0; fi
say "building messages and package (colcon, about 15 seconds)"
. scripts/env.sh
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
# The underlay of wheels is no colcon prefix, which colcon mentions once per run.
if ! colcon build --symlink-install --event-handlers console_cohesion- console_direct- summary- >"$log" 2>&1; then
  cat "$log" >&2
  fail "colcon build failed, its output is above" "mend what it names; for a fresh start: make clean && make build"
fi
key >"$stamp"
say "build is complete: . install/setup.bash in a shell, or . scripts/env.sh for the checkout"
