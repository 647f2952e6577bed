"""What a policy sees of a domain of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.view.node_plans import NodePlans
from headway.view.node_turns import NodeTurns

if TYPE_CHECKING:
    from headway.state import Job

_INF = float("inf")


class NodeView(NodePlans):
    """A view of a domain of nodes."""

    __slots__ = ("_by_offer",)

    def __init__(self, *args: Any, by_offer: bool = False, **more: Any) -> None:
        """``by_offer``: where a job is put depends on nothing but the job and what it is offered. The others
        as for :class:`headway.view.node_fits.NodeFits`."""
        super().__init__(*args, **more)
        self._by_offer = by_offer

    def serve(self, jobs: Sequence[Job], reason: str = "", depth: int | None = None) -> None:
        domain, most = self.domain, _INF if depth is None else depth
        turns: NodeTurns | None = self._turns
        if self.queue is domain.queue and not self.started and self._is_plain(jobs):
            if turns is not None:
                if self._served == self._cycle - 1 and len(jobs) == self.fresh and turns.depth == most:
                    self._served = self._cycle
                    turns.go_on(jobs, reason)
                    return
            elif len(jobs) == len(domain.queue) and self._ahead is None and not self._bookings:
                self._turns, self._served = NodeTurns(self, most), self._cycle
                self._turns.go_on(jobs, reason)
                return
        self._leave_turns()
        super().serve(jobs, reason, depth)

    def _is_plain(self, jobs: Sequence[Job]) -> bool:
        """Whether jobs may be served out of turn: what they find is a matter of what nodes have left alone.

        It is not where jobs may be barred, take licences, are in several pools, keep to reservations or wait
        for nodes to wake, nor where a plugin that places jobs looks at the view. A job of no length takes
        nothing from what is ahead, but is there.
        """
        state = self._state
        alone = state.bars is None and state.licences is None and not state.in_several
        plain = alone and self._by_offer and state.nodes.unbound and not state.reservations
        return plain and all([job.expected_runtime > 0 for job in jobs])
