"""LeRobot's ACT with and without a memory."""
