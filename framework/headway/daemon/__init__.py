"""The daemon: one run after another, each made completely before the run that it follows is given up."""
