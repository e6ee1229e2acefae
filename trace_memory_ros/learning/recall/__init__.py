"""Train any registered memory on a symbol stream."""
