"""Slurm, driven from outside: jobs held for headway, started on chosen nodes by pinning and releasing."""

from headway_adapters.slurm.adapter import SlurmAdapter
from headway_adapters.slurm.options import SlurmOptions

__all__ = ["SlurmAdapter", "SlurmOptions"]
