"""Everything that talks to a cluster: batch systems and the emulated cluster."""
