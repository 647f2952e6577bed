"""Jobs that read large files: which node runs which job, and which store holds which file (Phan 2005)."""
