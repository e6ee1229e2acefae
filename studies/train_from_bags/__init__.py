"""Training from bags alone."""
