"""What policy_node is made of."""
