"""Orders: in which order waiting jobs are served. Any of them goes with any policy."""
