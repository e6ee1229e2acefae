"""Features of a frozen backbone, computed once per image and kept on disk."""
