"""What every room may use: plain data read strictly, files written in one move, processes that end in time."""
