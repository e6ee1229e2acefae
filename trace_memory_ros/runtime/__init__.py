"""One memory tick, called alike by training, bag replay and the live node."""
