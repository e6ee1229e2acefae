"""Memory on the robot, policy on another machine."""
