"""Jobs that ended, from what a batch system's accounting says: for histories, and as a trace.

Each kind of text is a :class:`headway.workload.format.Format`, told by how a file begins:

- :mod:`.slurm`: what ``sacct`` prints, with its header.
- :mod:`.pbs`: the accounting logs of a PBS or Torque server (``server_priv/accounting/*``).
- :mod:`.lsf`: ``lsb.acct``, and ``lsb.events`` with it where limits are wanted.
- :mod:`.gridengine`: Grid Engine's ``accounting``.

Users name their jobs, so what a job is called tells nothing of how a line is to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.workload.accounting.kinds import accounted_trace, history_of, is_accounting, parse_accounting
    from headway.workload.ended import Ended

__all__ = ["Ended", "accounted_trace", "history_of", "is_accounting", "parse_accounting"]

__getattr__ = late(
    __name__,
    {
        ".kinds": "accounted_trace history_of is_accounting parse_accounting",
        "headway.workload.ended": "Ended",
    },
)
