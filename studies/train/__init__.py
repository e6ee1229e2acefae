"""How fast training is, and what it needs."""
