"""Accounts and users: their tree, what they use, and what counts it; for priority, limits and fairness."""
