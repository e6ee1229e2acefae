"""Two simulated arms: tasks with delayed evidence, their demonstrations, closed loops and the demo."""
