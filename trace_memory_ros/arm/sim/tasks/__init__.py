"""The arm's tasks, one file each; `table.py` has them by name."""
