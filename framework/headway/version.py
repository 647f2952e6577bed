"""Which version this is: results, journals and reports say it."""

__version__ = "0.2.0"
