"""Moments at which only the past tells what to do, found in plain demonstrations."""
