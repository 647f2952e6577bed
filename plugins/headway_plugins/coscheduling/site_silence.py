"""Which machines' sites do not answer, and which have only just answered again.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5, leaves to the sites what an outage means; ours is :mod:`.watching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway.events import ClusterAnswers
from headway.state import State
from headway_plugins.coscheduling.machines import MachineOptions
from headway_plugins.coscheduling.rounds import Made


class SiteSilence:
    """What is known of the silence of the sites; times are absolute seconds."""

    def __init__(self, machines: Mapping[str, MachineOptions], patience: float) -> None:
        """``patience``: seconds that a site has to answer, and its nodes to be up again after it did."""
        self._machines, self.patience = machines, patience
        #: Of each cluster: when it answered again last.
        self._answered: dict[str, float] = {}

    def answers(self, event: ClusterAnswers) -> None:
        """A cluster answers again."""
        self._answered[event.cluster] = event.time

    def since(self, machine: str, state: State) -> float | None:
        """Since when a machine's site has not answered; None: it answers."""
        known = self._machines.get(machine)
        return state.silent_since(known.pool) if known is not None else None

    def silent(self, parts: Iterable[Made], state: State) -> dict[str, float]:
        """The sites of these parts that do not answer, and since when."""
        found = {part.site: self.since(part.site, state) for part in parts}
        return {site: since for site, since in found.items() if since is not None}

    def unsettled(self, parts: Iterable[Made], now: float) -> dict[str, float]:
        """The sites of these parts that have only just answered again, and until when they are that."""
        found = {}
        for site in {part.site: None for part in parts}:
            cluster = self._machines[site].pool.partition(":")[0]
            answered = self._answered.get(cluster, self._answered.get(""))
            if answered is not None and now < answered + self.patience:
                found[site] = answered + self.patience
        return found
