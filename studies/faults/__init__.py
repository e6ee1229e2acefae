"""Faults of a running robot, one after another: what memory, policy and their health say and do."""
