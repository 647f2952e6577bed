"""IBM Spectrum LSF and its open-source relatives (OpenLava, volclava)."""

from headway_adapters.lsf.adapter import LsfAdapter
from headway_adapters.lsf.options import LsfOptions

__all__ = ["LsfAdapter", "LsfOptions"]
