"""Whose turn it is: accounts and shares, usage, fair share, and the weighted sum of factors."""
