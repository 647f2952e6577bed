"""Choosing between two policies by what users submit: the share of small jobs.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, section 5: packing pays where large jobs dominate; where most
jobs are small, plain backfilling does as well. This plugin looks at the last ``window`` jobs that
were submitted, and switches between two configured policies with hysteresis: to ``mostly_small``
when the share of jobs of at most ``small`` processors rises above ``threshold + margin``, to
``mostly_large`` when it falls below ``threshold - margin``. The first start after a switch says in
its reason why, and so it stands in the journal.

The paper gives no numbers: the defaults are its example of a crossing between P_S = 0.5 and 0.8, and
its largest small size, 96 processors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pydantic

from headway.decisions import Decision
from headway.events import Event, JobSubmitted
from headway.hookspecs import hookimpl
from headway.plugins import Again, Catalogue, PluginConfig, Plugins, Traits, make_plugin, traits_of
from headway.state import Job, State
from headway.view import View


class SelectOptions(pydantic.BaseModel):
    """Options of the selector."""

    model_config = pydantic.ConfigDict(extra="forbid")

    small: int = pydantic.Field(default=96, ge=1, description="most processors of a small job")
    threshold: float = pydantic.Field(
        default=0.65, ge=0, le=1, description="share of small jobs at which the policy switches"
    )
    margin: float = pydantic.Field(
        default=0.05,
        ge=0,
        le=0.5,
        description="distance from that share within which the policy does not switch",
    )
    window: int = pydantic.Field(
        default=200, ge=1, description="number of the last submitted jobs that are looked at"
    )
    mostly_small: str = pydantic.Field(default="easy", description="policy when small jobs dominate")
    mostly_large: str = pydantic.Field(default="delayed-los", description="policy when large jobs dominate")
    options: dict[str, dict[str, Any]] = pydantic.Field(
        default_factory=dict, description="options of the two policies, by name"
    )

    @pydantic.field_validator("mostly_small", "mostly_large")
    @classmethod
    def _not_itself(cls, name: str) -> str:
        if name == "select":
            raise ValueError("another policy than select itself")
        return name


class Select:
    """Switch between two policies by the share of small jobs among the last submitted ones."""

    Options = SelectOptions
    traits = Traits(
        ask_again=Again.DOMAIN,
        paper=(
            "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime "
            "Elasticity in a Parallel Processing Environment, 2012"
        ),
    )

    def __init__(self, options: SelectOptions) -> None:
        self.options = options
        catalogue = Catalogue()
        self._policies: dict[str, Any] = {}
        for key in ("mostly_small", "mostly_large"):
            name = getattr(options, key)
            where = f"select: {key}"
            config = PluginConfig(name, options.options.get(name, {}), where)
            self._policies[name] = make_plugin(catalogue.get(name, where), config)
        policies = Plugins()
        for name, policy in self._policies.items():
            policies.add(name, policy)
        observing = policies.implementations("observe")
        self._observing = [function for _, function in observing]
        shown = [traits_of(self._policies[name]).observes for name, _ in observing]
        if None not in shown:
            kinds = {kind for several in shown for kind in several or ()}
            self.traits = replace(self.traits, observes=(JobSubmitted, *kinds))
        self._recent: deque[bool] = deque(maxlen=options.window)
        self._current = options.mostly_large
        #: Why it switched; told by the next start.
        self._news = ""

    @property
    def share(self) -> float:
        """Share of small jobs among the recent jobs."""
        return sum(self._recent) / len(self._recent) if self._recent else 0.0

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        for forward in self._observing:
            forward(event, state)
        if isinstance(event, JobSubmitted):
            self._recent.append(event.job.request.processors <= self.options.small)
            self._choose()

    def _choose(self) -> None:
        options = self.options
        if len(self._recent) < options.window:
            return
        share, current = self.share, self._current
        if share > options.threshold + options.margin:
            current = options.mostly_small
        elif share < options.threshold - options.margin:
            current = options.mostly_large
        if current != self._current:
            self._news = (
                f"switched from {self._current} to {current}: {share:.0%} of the last {options.window} jobs "
                f"have at most {options.small} processors; "
            )
            self._current = current

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[Any, ...] | None:
        key = getattr(self._policies[self._current], "queue_key", None)
        return None if key is None else key(job)

    @hookimpl
    def prepare(self, view: View) -> None:
        forward = getattr(self._policies[self._current], "prepare", None)
        if forward is not None:
            forward(view)

    @hookimpl
    def schedule(self, view: View) -> Iterable[Decision] | None:
        if self._news:
            # The bookings are the other policy's, so this policy looks at everything anew.
            view.forget()
            view.fresh = -1
            view.arrivals = None
        made = self._policies[self._current].schedule(view)
        if self._news and made:
            made = list(made)
            made[0] = msgspec.structs.replace(made[0], reason=self._news + made[0].reason)
            self._news = ""
        return made

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {"recent": [int(small) for small in self._recent], "current": self._current}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._recent.extend(bool(small) for small in saved["recent"])
        if saved["current"] in self._policies:
            self._current = saved["current"]
