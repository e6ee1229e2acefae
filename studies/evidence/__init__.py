"""Which history transforms a memory follows, and which moment its decisions come from."""
