"""One file per task or part of it."""
