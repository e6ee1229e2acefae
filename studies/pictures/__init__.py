"""Whether raw pictures arrive over ROS 2's middleware."""
