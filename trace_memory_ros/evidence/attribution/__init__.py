"""Cue attribution: which moments a decision came from, by leaving each of them out."""
