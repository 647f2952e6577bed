"""How fast data pass between sites, as measured: copies that ended correct what the configuration says."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from statistics import median
from typing import Any

from headway.events import DatasetCopied
from headway.state.catalogue import Catalogue

_INF = float("inf")
#: Copies of a link that count.
LAST = 20
#: An expectation is wrong if a copy takes more than so many times as long, or as short.
FACTOR = 2.0


class Measured:
    """Bytes a second of each link: the median of its last copies, before the first one as configured."""

    def __init__(self, *, learning: bool = True) -> None:
        self._learning = learning
        self._rates: dict[tuple[str, str], deque[float]] = {}
        #: How long a copy was expected to take when it began, by dataset and site.
        self._expected: dict[tuple[str, str], float] = {}
        #: Copies one after the other whose expectation was wrong.
        self.wrong = 0

    def seconds(self, catalogue: Catalogue, dataset: str, source: str, site: str) -> float:
        """How long a copy takes; infinite if nothing passes there."""
        rates = self._rates.get((source, site))
        configured = catalogue.seconds(dataset, source, site)
        if not rates or configured == _INF:
            return configured
        latency = catalogue.links[source, site].latency
        return latency + catalogue.datasets[dataset].size / median(rates)

    def nearest(
        self, catalogue: Catalogue, dataset: str, site: str, without: Container[str] = ()
    ) -> str | None:
        """The site from which a copy comes soonest, as :meth:`Catalogue.nearest`; ``without`` these sites."""
        if not without and not self._rates:
            return catalogue.nearest(dataset, site)
        found = [
            (self.seconds(catalogue, dataset, source, site), at, source)
            for at, source in enumerate(catalogue.sites)
            if source != site and source not in without and catalogue.has(dataset, source)
        ]
        best = min(found, default=(_INF, 0, ""))
        return best[2] if best[0] < _INF else None

    def begins(self, catalogue: Catalogue, dataset: str, source: str, site: str) -> None:
        """A copy was decided: what is expected of it is kept until it ends."""
        self._expected[dataset, site] = self.seconds(catalogue, dataset, source, site)

    def breaks(self, dataset: str, site: str) -> None:
        """A copy did not arrive: nothing follows from it."""
        self._expected.pop((dataset, site), None)

    def took(self, catalogue: Catalogue, event: DatasetCopied) -> None:
        """A copy has arrived."""
        expected = self._expected.pop((event.dataset, event.site), None)
        link = catalogue.links.get((event.source, event.site))
        if event.seconds is None or link is None:
            return
        if expected is not None and 0 < expected < _INF:
            off = event.seconds > FACTOR * expected or event.seconds * FACTOR < expected
            self.wrong = self.wrong + 1 if off else 0
        flowing = event.seconds - link.latency
        if self._learning and flowing > 0:
            rates = self._rates.setdefault((event.source, event.site), deque(maxlen=LAST))
            rates.append(catalogue.datasets[event.dataset].size / flowing)

    def saved(self) -> list[Any]:
        """What was measured, as JSON values."""
        return [[*link, list(rates)] for link, rates in self._rates.items()]

    def take_up(self, saved: list[Any]) -> None:
        """What :meth:`saved` gave in an earlier run."""
        if self._learning:
            self._rates = {(a, b): deque(rates, maxlen=LAST) for a, b, rates in saved}
