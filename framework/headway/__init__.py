"""headway: an external scheduler for real batch systems and for an emulated cluster."""

__version__ = "0.2.0"

from headway.inputs.old_paths import serve_old_paths

serve_old_paths()
