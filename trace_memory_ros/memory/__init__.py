"""Memory mechanisms behind one contract (`base.py`), one file each, by name in `registry.py`."""
