"""Robots of strangers: from their bags to a policy that moves them."""
