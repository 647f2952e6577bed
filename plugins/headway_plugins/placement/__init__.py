"""Placements: which nodes a starting job gets."""
