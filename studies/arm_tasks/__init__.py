"""Which memories can do which of the arm's tasks, from the first training phase alone."""
