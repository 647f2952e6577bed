"""Plain data with units: jobs, requests, nodes, pools, reservations, placements.

Everything here is a stated fact and is therefore frozen. What changes while the
scheduler runs (which job runs where, what is free) lives in :mod:`headway.state`.

The classes are :class:`msgspec.Struct`: frozen data classes. They are created about ten times
faster than classes of :mod:`dataclasses`, and encode to, and decode with validation from, JSON,
which is what the journal stores.

Units: times are seconds (absolute times since the epoch in live mode, since the trace's start in
emulation), memory is bytes, frequency hertz, power watts, energy joules.
"""

from headway.model.energy import EnergyProfile, FrequencyLevel, NodeClass, SleepState
from headway.model.jobs import Dependency, JobDescription, Request
from headway.model.nodes import ClusterDescription, NodeDescription, PoolBounds, PoolDescription
from headway.model.placements import Placement, processors_of
from headway.model.policy import Association, SitePolicy
from headway.model.reservations import FOR_JOB, Reservation
from headway.model.sites import Dataset, Link, Site, Sites, Store
from headway.model.switches import SwitchDescription

__all__ = [
    "FOR_JOB",
    "Association",
    "ClusterDescription",
    "Dataset",
    "Dependency",
    "EnergyProfile",
    "FrequencyLevel",
    "JobDescription",
    "Link",
    "NodeClass",
    "NodeDescription",
    "Placement",
    "PoolBounds",
    "PoolDescription",
    "Request",
    "Reservation",
    "Site",
    "SitePolicy",
    "Sites",
    "SleepState",
    "Store",
    "SwitchDescription",
    "processors_of",
]
