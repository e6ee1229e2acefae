"""What memory_node is made of."""
