"""AURA-Mem: a fast-weight matrix behind a learned write gate."""
