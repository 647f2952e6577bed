"""Batches of moldable jobs: programs that may be started on fewer processors than they have processes."""
