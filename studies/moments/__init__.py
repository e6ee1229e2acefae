"""Moments found in plain demonstrations."""
