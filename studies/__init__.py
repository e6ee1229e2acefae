"""Studies: what the package claims, measured. Not installed; `trace-memory bench NAME` runs them from a checkout."""
