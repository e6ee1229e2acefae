"""`trace-memory demo`: memories side by side over ROS 2 topics, judged, and shown on a page."""
