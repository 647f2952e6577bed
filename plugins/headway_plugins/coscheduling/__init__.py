"""Capacity promised ahead of time."""
