"""Slurm's output -> our snapshot. Pure: no commands, no clock; tested on recorded output.

Jobs come from ``squeue --json``, nodes from ``scontrol show nodes --json`` or ``sinfo --json`` (or
as text), partitions and reservations from ``scontrol -o show``. Numbers and states are read as
the versions write them (:mod:`headway_adapters.slurm.values`); what is unknown is kept, taken in
its careful meaning and noted once.
"""

from headway_adapters.slurm.reader.bounded import LIFTED, read_lifted
from headway_adapters.slurm.reader.detail import Detail
from headway_adapters.slurm.reader.documents import (
    JobRecord,
    backfill_interval,
    config,
    decode,
    records,
    starts_heterogeneous,
    timestamp,
)
from headway_adapters.slurm.reader.endings import Ending, read_job_text, read_sacct, says_gone
from headway_adapters.slurm.reader.energy import read_energies, read_watts
from headway_adapters.slurm.reader.gres import gres
from headway_adapters.slurm.reader.holds import RELEASED, USER_HOLD, said_by_user
from headway_adapters.slurm.reader.jobs import Jobs, read_jobs
from headway_adapters.slurm.reader.licences import licences, read_licences
from headway_adapters.slurm.reader.nodes import Nodes, read_nodes, read_nodes_text
from headway_adapters.slurm.reader.partitions import Partition, read_partitions, told
from headway_adapters.slurm.reader.policy import ASSOCIATIONS, QOS, USAGE, USERS, read_policy
from headway_adapters.slurm.reader.record import shown_of
from headway_adapters.slurm.reader.remembered import Remembered
from headway_adapters.slurm.reader.request import forgets_nodes, processors_per_task
from headway_adapters.slurm.reader.reservations import RESERVATION_PREFIX, read_reservations
from headway_adapters.slurm.reader.routed import unmarked_label
from headway_adapters.slurm.reader.site import Site
from headway_adapters.slurm.reader.states import JOB_STATES, job_state
from headway_adapters.slurm.reader.topology import BOUNDS, KINDS, Bounds, read_bounds, read_topology

__all__ = [
    "ASSOCIATIONS",
    "BOUNDS",
    "JOB_STATES",
    "KINDS",
    "LIFTED",
    "QOS",
    "RELEASED",
    "RESERVATION_PREFIX",
    "USAGE",
    "USERS",
    "USER_HOLD",
    "Bounds",
    "Detail",
    "Ending",
    "JobRecord",
    "Jobs",
    "Nodes",
    "Partition",
    "Remembered",
    "Site",
    "backfill_interval",
    "config",
    "decode",
    "forgets_nodes",
    "gres",
    "job_state",
    "licences",
    "processors_per_task",
    "read_bounds",
    "read_energies",
    "read_job_text",
    "read_jobs",
    "read_licences",
    "read_lifted",
    "read_nodes",
    "read_nodes_text",
    "read_partitions",
    "read_policy",
    "read_reservations",
    "read_sacct",
    "read_topology",
    "read_watts",
    "records",
    "said_by_user",
    "says_gone",
    "shown_of",
    "starts_heterogeneous",
    "timestamp",
    "told",
    "unmarked_label",
]
