"""Live against replay against the training scan."""
