"""The commands of LSF over an emulated cluster, in two flavours: IBM Spectrum LSF and volclava.

What was seen on a running volclava 2.2 and is done so here: ``brun`` starts held jobs, jobs with unmet
dependencies and jobs whose time has not come, and starts on a full host, without a word, and the job runs
a little later; an inactivated queue accepts jobs and starts none; the limit of a running job cannot be
changed; ``bjobs -o`` knows few fields and refuses the whole command otherwise; ``bhosts`` and ``bqueues``
know no ``-json``; there are no reservations and no ``bresize``; a daemon that does not answer is waited
for without end. The IBM flavour is after its documentation: all fields, ``-json`` everywhere, limits of
running jobs, ``brsvadd``, ``brsvdel``, ``brsvs`` and ``bresize release``.

What was not seen and is our guess: the texts of refused options, what ``brun`` says to unknown hosts, too
few slots and hosts that are down. Dependency conditions may be joined by ``&&`` only (others are refused),
memory is not counted, and there are no checkpoints and migrations.

LSF's own scheduler (an active queue) is first come, first served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway_adapters.commands.lsf_administration import LsfAdministration
from headway_adapters.commands.lsf_jobs import LsfJobs
from headway_adapters.commands.lsf_listing import LsfListing
from headway_adapters.commands.machine import Machine
from headway_adapters.commands.server import Call, Reply


class Lsf(LsfJobs, LsfListing, LsfAdministration):
    """One LSF cluster."""

    def __init__(
        self, machine: Machine, *, cluster: str = "emulated", queues: Sequence[str] = ("normal",),
        flavour: str = "ibm", active: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(machine, cluster=cluster, queues=queues, flavour=flavour, active=active)
        self.commands: dict[str, Callable[[Call], Reply]] = {
            "bjobs": self._bjobs, "bsub": self._bsub, "brun": self._brun, "bkill": self._bkill,
            "bstop": self._bstop, "bresume": self._bresume, "bmod": self._bmod,
            "brequeue": self._brequeue, "bswitch": self._bswitch, "btop": self._btop, "bbot": self._bbot,
            "bhosts": self._bhosts, "bqueues": self._bqueues, "lshosts": self._lshosts,
            "lsload": self._lsload, "lsid": self._lsid,
            "lsclusters": self._lsclusters, "badmin": self._badmin, "bparams": self._bparams,
            "bhist": self._bhist, "bmgroup": self._bmgroup,
        }  # fmt: skip
        if flavour == "ibm":
            self.commands |= {
                "brsvadd": self._brsvadd, "brsvdel": self._brsvdel, "brsvs": self._brsvs,
                "bresize": self._bresize,
            }  # fmt: skip
