"""Pipelines: programs of several stages, each with copies of its own; who gets how many processors."""
