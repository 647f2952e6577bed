"""The commands of PBS over an emulated cluster.

What was seen on a running OpenPBS 23.06 and is done so here: ``qrun -H`` starts a held job, and starts
on a full vnode, without a word; it refuses a job whose time has not come or whose dependency is not met;
``qsig -s resume`` only asks the scheduler; ``admin-suspend`` puts the vnodes in maintenance; only a
manager raises the walltime of a running job; reservations wait for PBS's own scheduler; texts and exit
codes (the server's error number modulo 256, 2 for ``qrun``).

What was not seen and is our guess: the refusal of a start on vnodes that are down, offline or in
maintenance (the same as for resources that are not there), the texts of wrong options, what ``qalter``
says to wrong values.

PBS's own scheduler (``set server scheduling = True``) is first come, first served, and respects confirmed
reservations.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway_adapters.commands.machine import Machine
from headway_adapters.commands.pbs_administration import PbsAdministration
from headway_adapters.commands.pbs_jobs import PbsJobs


class Pbs(PbsJobs, PbsAdministration):
    """OpenPBS with one server."""

    def __init__(
        self, machine: Machine, *, server: str = "pbshost", queues: Sequence[str] = ("workq",),
        scheduling: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(machine, server=server, queues=queues, scheduling=scheduling)
        self.commands = {
            "qstat": self._qstat, "qsub": self._qsub, "qrun": self._qrun, "qdel": self._qdel,
            "qhold": self._qhold, "qrls": self._qrls, "qalter": self._qalter, "qsig": self._qsig,
            "qrerun": self._qrerun, "qmove": self._qmove, "qmgr": self._qmgr, "pbsnodes": self._pbsnodes,
            "pbs_rsub": self._rsub, "pbs_rstat": self._rstat, "pbs_rdel": self._rdel,
            "pbs_ralter": self._ralter,
            "pbs_release_nodes": self._release_nodes,
        }  # fmt: skip
