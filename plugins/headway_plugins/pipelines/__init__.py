"""Pipelines: programs of several stages, each with copies of its own; how many processors each gets."""
