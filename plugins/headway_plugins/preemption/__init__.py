"""Preemption: running jobs make room for others that may take their place."""
