"""Cues that are small in the image: what the memory's eyes must be like to see them."""
