"""Workload models: jobs drawn from a seeded generator, one model a file."""
