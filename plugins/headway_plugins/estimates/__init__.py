"""Estimate models: what users would have said how long their jobs run."""
