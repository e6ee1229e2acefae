"""Sensor streams to one `Observation` per control tick."""
