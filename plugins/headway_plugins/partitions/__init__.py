"""Partitions that are wired and booted: which block of a machine a job gets, and which blocks are kept
booted."""
