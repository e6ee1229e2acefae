"""How many times as fast as real time a bag is replayed."""
