"""Messages that streams and commands come in: their fields, units, and how they are read live and from CDR."""
