"""Broken checkpoints in great number."""
