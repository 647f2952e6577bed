"""What happened to a domain since its policies were asked last.

Nothing, arrivals, other expected ends, or anything else: a policy that knows which of these it was looks only
at what is new (:class:`headway.view.View`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

#: A job.
T = TypeVar("T")

#: :attr:`News.fresh` where expected ends have moved and nothing else happened.
ENDS_MOVED = -2
_ANYTHING = -1


class News(Generic[T]):
    """The news of one domain."""

    __slots__ = ("arrivals", "due", "fresh")

    def __init__(self, due: bool = False, fresh: int = _ANYTHING, arrivals: list[T] | None = None) -> None:
        #: The policies are to be asked.
        self.due = due
        #: How many jobs came at the queue's end; :data:`ENDS_MOVED` if expected ends have moved and nothing
        #: else happened; -1 if anything else did.
        self.fresh = fresh
        #: Jobs that came into the queue, wherever in it, if nothing else happened; else None.
        self.arrivals = arrivals

    def copy(self) -> News[T]:
        """The news as they are now: put back, they are all that the domain has heard."""
        return News(self.due, self.fresh, self.arrivals)

    def tell(self) -> tuple[int, list[T] | None]:
        """:attr:`fresh` and :attr:`arrivals` for the policy that is asked now; nothing has happened from now
        on."""
        told = self.fresh, self.arrivals
        self.fresh, self.arrivals = 0, []
        return told

    def everything(self) -> None:
        """Anything may have happened that lets other jobs start."""
        self.due = True
        self.fresh = _ANYTHING
        self.arrivals = None

    def nothing_stands(self) -> None:
        """Nothing that was concluded stands. That alone is no reason to ask the policies."""
        self.fresh = _ANYTHING
        self.arrivals = None

    def ends_moved(self) -> None:
        """A job's expected end has changed: bookings are made anew, but nothing became free and no
        job came."""
        self.due = True
        self.fresh = ENDS_MOVED if self.fresh in (0, ENDS_MOVED) else _ANYTHING
        self.arrivals = None

    def came(self, job: T, *, last: bool) -> bool:
        """A job came into the queue, ``last`` of it or between other jobs. Returns whether all that was
        concluded about the other jobs stands; if not, the policies are to be asked."""
        if self.arrivals is not None:
            self.arrivals.append(job)
        if last and self.fresh >= 0:
            self.fresh += 1
            return True
        self.fresh = _ANYTHING
        self.due = True
        return False

    def came_among(self, jobs: Sequence[T]) -> None:
        """Several jobs came into the queue, between other jobs."""
        if self.arrivals is not None:
            self.arrivals += jobs
        self.fresh = _ANYTHING
        self.due = True


class _Hearing(Protocol):
    """What has news: a domain."""

    news: News[Any]


class Unnoticed:
    """What happens meanwhile is no news for these domains: ``with Unnoticed(domains): ...``."""

    __slots__ = ("_before", "_domains")

    def __init__(self, domains: Iterable[_Hearing]) -> None:
        self._domains = domains

    def __enter__(self) -> None:
        self._before = [(domain, domain.news.copy()) for domain in self._domains]

    def __exit__(self, *_: object) -> None:
        for domain, news in self._before:
            domain.news = news
