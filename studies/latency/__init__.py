"""Latency of the live graph."""
