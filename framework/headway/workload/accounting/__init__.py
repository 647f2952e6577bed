"""Jobs that ended, from what a batch system's accounting says: for histories, and as a trace.

Three kinds of text, told apart by how they begin:

- :mod:`.slurm`: what ``sacct -X -P`` prints, with its header.
- :mod:`.pbs`: a server's accounting logs (``server_priv/accounting/*``).
- :mod:`.lsf`: ``lsb.acct``, and ``lsb.events`` with it where limits are wanted.

Whoever runs a job names it, so what it is called tells nothing of how a line is to be read: a line that has
not just the fields that it should have is an error.
"""

from headway.workload.accounting.ended import Ended
from headway.workload.accounting.kinds import history_of, is_accounting, parse_accounting
from headway.workload.accounting.records import accounted_trace

__all__ = ["Ended", "accounted_trace", "history_of", "is_accounting", "parse_accounting"]
