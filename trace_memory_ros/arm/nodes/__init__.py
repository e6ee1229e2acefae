"""The simulated arm as a ROS 2 node."""
