"""Power and energy: what a cluster draws, how fast its jobs run, and the sources of these figures.

:mod:`~headway.energy.model` answers from a cluster's energy profile, :mod:`~headway_plugins.energy.meter`
follows the power of every pool, :mod:`~headway.energy.profiles` reads profiles. What a run used is
computed afterwards, by :mod:`headway.metrics.energy`.
"""

from headway.energy.model import SENSITIVITY, EnergyModel, level_of

__all__ = ["SENSITIVITY", "EnergyModel", "level_of"]
