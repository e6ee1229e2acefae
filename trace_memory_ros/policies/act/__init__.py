"""The action-chunking transformer."""
