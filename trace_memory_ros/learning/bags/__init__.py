"""Training from bags."""
