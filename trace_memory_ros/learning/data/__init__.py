"""Episodes to learn from, as batches."""
