"""LeRobot's policies and datasets in training."""
