"""Demonstrations, whole-episode scans, losses and the trainer."""
