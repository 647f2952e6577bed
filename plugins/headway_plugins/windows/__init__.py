"""Two-phase windows: which jobs of stages to take on for a window with a deadline, and in which order to
run them."""
