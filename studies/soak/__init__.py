"""Memories that tick without end."""
