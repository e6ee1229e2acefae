"""POPGym."""
