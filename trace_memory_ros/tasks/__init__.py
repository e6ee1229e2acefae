"""Delayed-evidence tasks with scripted experts."""
