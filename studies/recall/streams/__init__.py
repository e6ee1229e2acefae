"""Symbol streams and mazes."""
