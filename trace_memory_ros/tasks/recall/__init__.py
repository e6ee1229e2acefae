"""Symbol streams that a memory must answer from: the recall tasks of the papers."""
