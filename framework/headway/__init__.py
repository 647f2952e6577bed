"""headway: an external scheduler for real batch systems and for an emulated cluster."""

__version__ = "0.2.0"
