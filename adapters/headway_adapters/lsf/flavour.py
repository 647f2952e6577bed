"""IBM Spectrum LSF and its relatives: which decisions each can carry out, and why not the others.

IBM's has all commands. OpenLava and volclava share the older ones: no advance reservations
(``brsvadd``), no resizing of running jobs (``bresize``), no power states (``badmin hpower``), and they
refuse to change the limit of a running job, even for the administrator. IBM's refuses that too
unless ``LSB_MOD_ALL_JOBS=Y`` is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway import decisions as d
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.polling import actuators

COMMON: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.Resize, d.Signal,
        d.Annotate, d.Route,
    }
)  # fmt: skip
#: Of the most able flavour; options add to that.
POSSIBLE: frozenset[type[d.Decision]] = COMMON | {d.SetTimeLimit, d.Reserve, d.Unreserve, d.Bind}
#: Of the most able flavour under the most generous configuration.
EVERYTHING: frozenset[type[d.Decision]] = POSSIBLE | {d.PowerDown, d.PowerUp, d.SetFrequency}


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
        if options.agents is not None:
            able.add(d.SwapTiers)
        if self.running_limits:
            able.add(d.SetTimeLimit)
        if self.ibm:
            able |= {d.Reserve, d.Unreserve, d.Bind}
            if options.power:
                able |= {d.PowerDown, d.PowerUp}
        return frozenset(able)

    def lacks(self, kind: type[d.Decision]) -> str:
        """That a decision of this kind cannot be carried out, and why, for a person."""
        return f"{kind.__name__} cannot be carried out on {self.title}: {self.why_not(kind)}"

    def why_not(self, kind: type[d.Decision]) -> str:
        """Why a decision of this kind cannot be carried out."""
        if kind is d.SetTimeLimit:
            allowed = " unless lsf.conf has LSB_MOD_ALL_JOBS=Y" if self.ibm else ""
            return f"it refuses to change the limit of a running job{allowed}"
        if kind in (d.Reserve, d.Unreserve, d.Bind):
            return "brsvadd is IBM Spectrum LSF's"
        if kind in (d.PowerDown, d.PowerUp):
            if self.ibm:
                return "neither cluster.options.power nor actuators.power_down is set"
            return "badmin hpower is IBM Spectrum LSF's"
        if kind is d.SetFrequency:
            return "only at a job's submission (IBM's bsub -freq), or by actuators.set_frequency"
        if kind is d.SwapTiers:
            return "cluster.options.agents is not set"
        return "LSF has no command for it"


def expected(options: LsfOptions) -> Flavour:
    """The flavour as far as the options say it. As long as LSF was not asked, what they leave open is
    thought possible; it is refused later if it is not."""
    if options.flavour == "openlava":
        return Flavour("OpenLava", ibm=False, running_limits=options.running_limits == "yes")
    title = "IBM Spectrum LSF" if options.flavour == "ibm" else "LSF"
    return Flavour(title, ibm=True, running_limits=options.running_limits != "no")
