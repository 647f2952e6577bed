"""Every shipped plugin: one folder a kind, one file an idea."""
