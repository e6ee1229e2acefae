"""Worlds that others wrote: what their studies share."""
