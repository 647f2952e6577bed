"""PBS: OpenPBS, PBS Professional, and the small variant that is Torque."""

from headway_adapters.pbs.adapter import PbsAdapter
from headway_adapters.pbs.options import PbsOptions

__all__ = ["PbsAdapter", "PbsOptions"]
