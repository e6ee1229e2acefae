"""Nodes over DDS: a package, so that what its tests share ends with them."""
