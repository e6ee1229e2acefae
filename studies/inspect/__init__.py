"""What looking into a large bag costs."""
