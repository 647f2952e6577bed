"""Placement by how nodes are connected: few switches, close to each other."""
