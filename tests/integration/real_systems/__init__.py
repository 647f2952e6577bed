"""The real batch systems, one way to each for the tests that run on all of them."""

from real_systems.base import EXECUTED, TRAP, RealSystem
from real_systems.inside import InsideDaemon
from real_systems.lsf import Lsf
from real_systems.pbs import Pbs
from real_systems.slurm import Slurm

__all__ = ["EXECUTED", "TRAP", "InsideDaemon", "Lsf", "Pbs", "RealSystem", "Slurm"]
