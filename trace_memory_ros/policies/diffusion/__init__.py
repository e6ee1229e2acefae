"""The diffusion policy."""
