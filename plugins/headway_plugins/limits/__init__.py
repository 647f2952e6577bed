"""Limits: how much users, accounts and others may have at once."""
