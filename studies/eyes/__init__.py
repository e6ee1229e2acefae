"""What looking costs."""
