#!/usr/bin/env bash
# Style, types and the import table.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/env.sh

status=0
say "ruff check"
ruff check || status=1
say "mypy"
mypy || status=1
say "import table and repository rules"
python -m pytest -q test/test_import_table.py test/test_repository.py || status=1
exit "$status"
