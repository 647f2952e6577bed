"""The experiments of papers, run again."""
