"""ELMUR: slots per layer, of which the least recently used is rewritten."""
