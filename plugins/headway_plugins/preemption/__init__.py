"""Preemption: running jobs make room for waiting jobs that may take their place."""
