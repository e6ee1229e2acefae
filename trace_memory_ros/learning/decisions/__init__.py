"""Whether decisions are right, and what that can be known by."""
