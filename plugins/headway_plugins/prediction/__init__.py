"""Predictors: how long jobs really run, for planning; the limit stays the user's."""
