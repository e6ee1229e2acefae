"""What `trace-memory doctor` is made of."""
