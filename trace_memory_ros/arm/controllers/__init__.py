"""A stand-in for ros2_control's controllers: what they refuse, and how they follow what they accept."""
