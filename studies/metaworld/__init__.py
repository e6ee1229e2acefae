"""Meta-World."""
