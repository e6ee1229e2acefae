"""Teachers of POPGym's environments: what they know, they were shown."""
