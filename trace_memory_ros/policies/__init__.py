"""Policies that a memory can condition, and the adapters that condition them."""
