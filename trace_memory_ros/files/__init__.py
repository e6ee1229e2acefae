"""Files of plain data: read strictly, written in one move."""
