"""ROS 2 nodes: declare, convert, call, publish. The only room that imports rclpy."""
