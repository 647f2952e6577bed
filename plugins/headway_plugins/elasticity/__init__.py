"""Elasticity: users change the time and the size of their jobs while these wait or run."""
