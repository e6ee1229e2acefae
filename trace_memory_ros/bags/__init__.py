"""Bags: rosbag2 recordings in, the same observations out that a live node sees, with every fault of a bag named."""
