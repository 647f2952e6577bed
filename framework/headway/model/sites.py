"""Sites: the clusters of a federation with what lies between them and what each has of data.

A site is one cluster of a federation and has its name. It has an owner, a time zone, a calendar that says
when it may be used, and a store with datasets. Links join sites. Nothing here is told by a batch system: the
configuration says it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

#: The attribute of a job that names its datasets, separated by commas.
DATA = "data"
#: The attribute of a job whose user allows that it is sent to another cluster: any value but "no".
MOVABLE = "movable"
#: Attributes of a job that ran and may begin again elsewhere: from its beginning, from what it saves now and
#: then, from what it saves when it is told to.
RESTARTABLE, CHECKPOINT, SAVES = "restartable", "checkpoint", "saves"
GOES_ON = frozenset({RESTARTABLE, CHECKPOINT, SAVES})

WEEK = 7 * 86400


class Dataset(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Data that jobs read and never change."""

    name: str
    #: Bytes.
    size: int
    #: The sites that have it when the run begins; none of these copies is ever dropped.
    at: tuple[str, ...] = ()


class Store(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a site keeps datasets."""

    #: Bytes; 0: not bounded.
    capacity: int = 0
    #: Copies to it that may be under way at a time; 0: any number.
    most_copies: int = 0


class Intake(msgspec.Struct, frozen=True):
    """How jobs of other clusters are submitted at a cluster."""

    #: A command line that runs another as the user ``{user}``; (): only the daemon's own user's jobs.
    submit_as: tuple[str, ...] = ()
    #: The account that they get; "": the account that they had.
    account: str = ""


class Site(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One cluster of a federation."""

    name: str
    #: Names of its pools.
    pools: tuple[str, ...] = ()
    owner: str = ""
    #: The time zone of its calendar, such as "Europe/Oslo".
    zone: str = "UTC"
    #: When it starts jobs: spans ``[begin, end)`` of the local week in seconds from Monday 0:00, in order and
    #: apart; none: always.
    calendar: tuple[tuple[int, int], ...] = ()
    #: None: it has no store, and jobs with datasets cannot run there.
    store: Store | None = None


class Link(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What data can take from one site to another."""

    source: str
    target: str
    #: Bytes a second; 0: nothing passes.
    bandwidth: float
    #: Seconds.
    latency: float = 0.0


class Replica(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A copy of a dataset that earlier runs have made, or that is on its way when a run begins."""

    dataset: str
    site: str
    #: When it came there (absolute seconds).
    since: float = 0.0
    #: Where it comes from, if it is on its way; "": it is there.
    source: str = ""
    #: Bytes of it that have arrived, if it is on its way.
    done: int = 0


class Sites(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All sites of a federation."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    #: What stores have when the run begins, and what is on its way to them, beside the datasets' originals. A
    #: live run begins without: its adapter looks at each copy and tells of it.
    replicas: tuple[Replica, ...] = ()

    def with_replicas(self, replicas: Iterable[Replica]) -> Sites:
        """The same with these copies, as far as they are configured."""
        stores = {site.name for site in self.sites if site.store is not None}
        originals = {one.name: one.at for one in self.datasets}
        known = tuple(
            one for one in replicas
            if one.site in stores and one.site not in originals.get(one.dataset, (one.site,))
        )  # fmt: skip
        return msgspec.structs.replace(self, replicas=known)


def datasets_of(attributes: dict[str, object] | None) -> tuple[str, ...]:
    """The datasets that a job's attributes name, each once."""
    said = (attributes or {}).get(DATA, "")
    names = said.split(",") if isinstance(said, str) else map(str, said) if isinstance(said, list) else ()
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def united(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans of a week in order, with those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return tuple(found)
