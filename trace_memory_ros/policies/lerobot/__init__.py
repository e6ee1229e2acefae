"""LeRobot's policies, conditioned on a memory without editing them."""
