"""What ran where: processor-time of each site, what it cost and emitted, and how much of it in open hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.model.site_hours import opens_and_closes
from headway.model.sites import Site
from headway.state import Job, State
from headway_plugins.sites.tariffs import Tariff

_HOUR = 3600.0


@dataclass
class Account:
    """What was used of one site so far."""

    processor_hours: float = 0.0
    #: In the unit of the tariffs.
    cost: float = 0.0
    carbon: float = 0.0
    #: Of the processor-hours, how many lay in the site's open hours.
    open_hours: float = 0.0


class Ledger:
    """The executions of jobs, site by site: a watcher of what jobs take and give back."""

    def __init__(
        self,
        state: State,
        sites: Mapping[str, Site],
        prices: Mapping[str, Tariff],
        carbons: Mapping[str, Tariff],
    ) -> None:
        self._state = state
        self._sites, self._prices, self._carbons = sites, prices, carbons
        self.accounts = {name: Account() for name in sites}
        #: Job -> its site, since when it has its processors (epoch seconds), and how many.
        self._running: dict[str, tuple[str, float, int]] = {}

    def took(self, job: Job) -> None:
        """A job has its processors from now on."""
        state = self._state
        assert state.catalogue is not None
        site = state.catalogue.site_of(job.pool.name)
        if site in self.accounts:
            self._running[job.id] = site, state.now + state.epoch, job.processors

    def gave(self, job: Job) -> None:
        """It has them no longer."""
        known = self._running.pop(job.id, None)
        if known is None:
            return
        name, begin, processors = known
        now = self._state.now + self._state.epoch
        account = self.accounts[name]
        account.processor_hours += processors * (now - begin) / _HOUR
        account.open_hours += processors * open_seconds(self._sites[name], begin, now) / _HOUR
        if (price := self._prices.get(name)) is not None:
            account.cost += processors * price.integral(begin, now) / _HOUR
        if (carbon := self._carbons.get(name)) is not None:
            account.carbon += processors * carbon.integral(begin, now) / _HOUR

    def figures(self) -> dict[str, object]:
        """Of all sites together, and of each."""
        of = self.accounts
        hours = sum(one.processor_hours for one in of.values())
        return {
            "cost": sum(one.cost for one in of.values()),
            "carbon": sum(one.carbon for one in of.values()),
            "share_in_open_hours": sum(one.open_hours for one in of.values()) / hours if hours else None,
            "sites": {
                name: {"processor_hours": one.processor_hours, "cost": one.cost, "carbon": one.carbon}
                for name, one in of.items()
            },
        }


def open_seconds(site: Site, begin: float, end: float) -> float:
    """How much of a time (epoch seconds) lies in the site's open hours."""
    found, at = 0.0, begin
    while at < end:
        is_open, until = opens_and_closes(site, at)
        if is_open:
            found += min(until, end) - at
        at = until
    return found
