"""IBM Spectrum LSF and its relatives: which decisions each can carry out, and why not the others.

IBM's has all commands. OpenLava and volclava share the older ones: no advance reservations
(``brsvadd``), no resizing of running jobs (``bresize``), no power states (``badmin hpower``), and they
refuse to change the limit of a running job, even for the administrator. IBM's refuses that too
unless ``LSB_MOD_ALL_JOBS=Y`` is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway import decisions as d
from headway_adapters import actuators
from headway_adapters.lsf.options import LsfOptions

COMMON: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.Resize,
    }
)  # fmt: skip
#: Of the most able flavour under the most generous configuration.
EVERYTHING: frozenset[type[d.Decision]] = COMMON | {
    d.SetTimeLimit, d.Reserve, d.Unreserve, d.PowerDown, d.PowerUp, d.SetFrequency,
}  # fmt: skip


@dataclass(frozen=True)
class Flavour:
    """One installation, as far as it decides what can be done."""

    #: Such as ``volclava 2.2``.
    title: str
    ibm: bool
    #: The limit of a running job can be changed.
    running_limits: bool

    def capabilities(self, options: LsfOptions) -> frozenset[type[d.Decision]]:
        """The decisions that it carries out under these options."""
        able = set(COMMON)
        # Only IBM's badmin hclose takes the comment by which a sleeping host is known again.
        able |= actuators.capabilities(options.actuators, drains=self.ibm)
        if self.running_limits:
            able.add(d.SetTimeLimit)
        if self.ibm:
            able |= {d.Reserve, d.Unreserve}
            if options.power:
                able |= {d.PowerDown, d.PowerUp}
        return frozenset(able)

    def lacks(self, kind: type[d.Decision]) -> str:
        """Why a decision of this kind cannot be carried out, for a person."""
        if kind is d.SetTimeLimit:
            why = "it refuses to change the limit of a running job"
            if self.ibm:
                why += " (LSB_MOD_ALL_JOBS=Y in lsf.conf allows it)"
        elif kind in (d.Reserve, d.Unreserve):
            why = "it has no advance reservations (brsvadd is IBM Spectrum LSF's)"
        elif kind in (d.PowerDown, d.PowerUp):
            why = "it has no power states (badmin hpower is IBM Spectrum LSF's)"
            if self.ibm:
                why = "neither cluster.options.power nor actuators for it are configured"
        elif kind is d.SetFrequency:
            why = (
                "LSF sets a clock frequency at a job's submission only (IBM's bsub -freq); "
                "cluster.options.actuators.set_frequency can name a command of the site"
            )
        else:
            why = "LSF has no command for it"
        return f"{kind.__name__} cannot be carried out on {self.title}: {why}"


#: As long as nobody answered: all is thought possible, and refused later if it is not.
UNKNOWN = Flavour("LSF", ibm=True, running_limits=True)
