"""Policies: which jobs start now."""
