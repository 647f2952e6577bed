"""headway: an external scheduler for real batch systems and for an emulated cluster."""

__version__ = "0.1.0"
