#!/usr/bin/env bash
# Run a command in the checkout's environment: scripts/run.sh python -m pytest test/signature
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/env.sh
exec "$@"
