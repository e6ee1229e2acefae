"""Recorded histories driven another way or for longer, and what a memory makes of them."""
