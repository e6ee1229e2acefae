"""Speed, drift and growth of path signatures beside peers."""
