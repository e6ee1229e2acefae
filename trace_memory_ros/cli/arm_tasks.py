"""The simulated arm's tasks by name, for commands that must not import it to know them; a test compares the two."""

ALL = ("origin", "colour", "sequence", "small_colour", "glyph", "cups", "when", "count", "match", "put_back")
LEARNED = tuple(name for name in ALL if name != "sequence")
"""Those that the usual recipe learns."""
