"""Training on symbol streams."""
