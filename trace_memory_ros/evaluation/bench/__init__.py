"""Commands that measure and write `out/<name>/summary.json`."""
