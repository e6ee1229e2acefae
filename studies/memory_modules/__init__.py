"""Fourteen memories under one policy, asked to decide after longer delays than they were trained on."""
