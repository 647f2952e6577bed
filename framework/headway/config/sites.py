"""Sites in a configuration: what the batch systems of a federation do not say of each other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import pydantic

from headway.config.section import Section
from headway.errors import UserError, nearest
from headway.inputs.durations import as_seconds
from headway.inputs.placeholders import check_command
from headway.inputs.sizes import ByteRate, Bytes
from headway.inputs.time_zones import TimeZone
from headway.model import ClusterDescription
from headway.model.sites import WEEK, Dataset, Intake, Link, Site, Sites, Store, united
from headway.model.transfers import Transfers

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(r"([a-z,-]+)(?:\s+(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2}))?")
EXPECTED_SPAN = "days and perhaps times, such as 'mon-fri 18:00-06:00' or 'sat,sun'"

#: Such a name can be a path's part and a word of a job's comment.
DatasetName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class StoreConfig(Section):
    """Where a site keeps datasets."""

    capacity: Bytes = pydantic.Field(default=0, description="bytes; 0: not bounded")
    copies: int = pydantic.Field(
        default=4, ge=0, description="copies to it that may be under way at a time; 0: any number"
    )
    path: str = pydantic.Field(
        default="",
        description="what stands for the store in commands, such as /data or login.example.org:/data",
    )

    @pydantic.field_validator("path")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if value != value.strip() or not value.isprintable() or value.startswith("-"):
            raise ValueError(
                f"a path that begins with no dash and has no blanks at its ends, found {value!r}"
            )
        return value


class SiteConfig(Section):
    """What a cluster is beside its batch system."""

    owner: str = pydantic.Field(default="", description="a name that plugins and reports may show")
    zone: TimeZone = pydantic.Field(default="UTC", description="time zone of the calendar")
    calendar: list[str] = pydantic.Field(
        default_factory=list,
        description="when jobs may start there: days and times, such as 'mon-fri 18:00-06:00'; default: "
        "always",
    )
    store: StoreConfig | None = pydantic.Field(
        default=None, description="the store of its datasets; default: it has none"
    )

    submit_as: list[str] = pydantic.Field(
        default_factory=list,
        description="command that runs another as the user {user}, to submit jobs that come from other "
        "clusters, such as [sudo, -n, -u, '{user}', --]; default: only jobs of the daemon's own user come",
    )
    account: str = pydantic.Field(
        default="", description="account of jobs that come from other clusters; default: the account they had"
    )

    @pydantic.field_validator("submit_as")
    @classmethod
    def _names_a_user(cls, value: list[str]) -> list[str]:
        if value and not any("{user}" in word for word in value):
            raise ValueError("a word with {user}")
        return value

    @pydantic.field_validator("calendar")
    @classmethod
    def _spans(cls, value: list[str]) -> list[str]:
        for text in value:
            spans_of(text)
        return value

    def described(self, name: str, pools: Sequence[str]) -> Site:
        """The same for the scheduler."""
        store = None
        if self.store is not None:
            store = Store(self.store.capacity, self.store.copies)
        spans = united(span for text in self.calendar for span in spans_of(text))
        return Site(name, tuple(pools), self.owner, self.zone, spans, store)

    def intake(self) -> Intake:
        """How jobs of other clusters are submitted there."""
        return Intake(tuple(self.submit_as), self.account)


class LinkConfig(Section):
    """What data can take between two sites."""

    between: tuple[str, str] = pydantic.Field(description="names of two clusters")
    bandwidth: ByteRate = pydantic.Field(description="bytes a second, such as 125MB/s, in each direction")
    latency: float = pydantic.Field(
        default=0.0, ge=0, le=3600, description="seconds until the first byte arrives"
    )
    one_way: bool = pydantic.Field(default=False, description="only from the first to the second")

    @pydantic.model_validator(mode="after")
    def _two(self) -> LinkConfig:
        if self.between[0] == self.between[1]:
            raise ValueError(f"two different clusters, found {self.between[0]!r} twice")
        return self

    def described(self) -> list[Link]:
        """The same for the scheduler."""
        ways = [self.between] if self.one_way else [self.between, self.between[::-1]]
        return [Link(source, target, self.bandwidth, self.latency) for source, target in ways]


class DatasetConfig(Section):
    """Data that jobs read and never change."""

    size: Bytes = pydantic.Field(description="bytes, such as 200GB")
    at: list[str] = pydantic.Field(
        min_length=1, description="clusters whose stores have it from the beginning"
    )


Seconds = Annotated[float, pydantic.BeforeValidator(as_seconds), pydantic.Field(gt=0, allow_inf_nan=False)]


class TransfersConfig(Section):
    """How datasets are copied."""

    links: Literal["full", "fair"] = pydantic.Field(
        default="full",
        description="in emulation: each copy has its link's whole bandwidth, or copies share it equally",
    )
    copy_: list[str] = pydantic.Field(
        default_factory=list,
        alias="copy",
        description="command of the site that copies a dataset: a list of words with {source}, {target}, "
        "{dataset}; default: real clusters copy nothing",
    )
    check: list[str] = pydantic.Field(
        default_factory=list,
        description="command that prints the checksum of a dataset in a store: words with {store}, "
        "{dataset}; both must print the same; default: no check",
    )
    size: list[str] = pydantic.Field(
        default_factory=list,
        description="command that prints how many bytes of a dataset are in a store: words with {store}, "
        "{dataset}; default: how far a copy is, is not known",
    )
    remove: list[str] = pydantic.Field(
        default_factory=list,
        description="command that removes a dataset, or what has arrived of it: words with {store}, "
        "{dataset}",
    )
    timeout: Seconds = pydantic.Field(
        default=86400.0, description="seconds after which a command is ended; such a copy counts as failed"
    )
    parallel: int = pydantic.Field(default=4, ge=1, le=64, description="copies that run at the same time")

    @pydantic.model_validator(mode="after")
    def _commands_make_sense(self) -> TransfersConfig:
        check_command("copy", self.copy_, must=("source", "target"), may=("dataset",))
        for name in ("check", "size", "remove"):
            check_command(name, getattr(self, name), must=("store", "dataset"))
        return self

    def described(self, sites: Mapping[str, SiteConfig | None], *, read_only: bool) -> Transfers:
        """The same for the adapter. ``read_only``: it must change nothing."""
        stores = {
            name: site.store.path
            for name, site in sites.items()
            if site is not None and site.store is not None
        }
        return Transfers(
            tuple(self.copy_), tuple(self.check), tuple(self.size), tuple(self.remove), self.timeout,
            self.parallel, stores, read_only,
        )  # fmt: skip


def spans_of(text: str) -> list[tuple[int, int]]:
    """Spans of the week in seconds from Monday 0:00, from days and times; ValueError for other text."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{EXPECTED_SPAN}, found {text!r}")
    days = [day for part in found[1].split(",") for day in _days(part, text)]
    begin, end = 0, 86400
    if found[2] is not None:
        begin, end = _clock(found[2], found[3], text), _clock(found[4], found[5], text)
        if end <= begin:
            end += 86400
    spans = []
    for day in days:
        first, last = day * 86400 + begin, day * 86400 + end
        spans.append((first, min(last, WEEK)))
        if last > WEEK:
            spans.append((0, last - WEEK))
    return spans


def _days(part: str, text: str) -> list[int]:
    first, dash, last = part.partition("-")
    for word in (first, last) if dash else (first,):
        if word not in DAYS:
            raise ValueError(f"{EXPECTED_SPAN}, found {text!r}.{nearest(word, DAYS)}")
    begin = DAYS.index(first)
    end = DAYS.index(last) if dash else begin
    return [day % 7 for day in range(begin, end + 1 if end >= begin else end + 8)]


def _clock(hour: str, minute: str, text: str) -> int:
    seconds = int(hour) * 3600 + int(minute) * 60
    if int(minute) > 59 or seconds > 86400:
        raise ValueError(f"times of day up to 24:00, found {text!r}")
    return seconds


def described_sites(
    pools: Mapping[str, Sequence[str]], sites: Mapping[str, SiteConfig | None], links: Sequence[LinkConfig],
    datasets: Mapping[str, DatasetConfig], source: str,
) -> Sites:  # fmt: skip
    """All sites, each with its pools; ``source`` leads errors. Raises :class:`UserError` for a name that is
    no cluster's, a link that is there twice, and a dataset at a site that has no store or no room for it."""
    found = [(sites.get(name) or SiteConfig()).described(name, there) for name, there in pools.items()]
    known = {site.name: site for site in found}
    wires: dict[tuple[str, str], Link] = {}
    for at, link in enumerate(links):
        where = f"{source}: links[{at}].between"
        for name in link.between:
            _known(name, known, where)
        for wire in link.described():
            if (wire.source, wire.target) in wires:
                raise UserError(f"{where}: there is a link from {wire.source} to {wire.target} already")
            wires[wire.source, wire.target] = wire
    left = {site.name: site.store.capacity or None for site in found if site.store is not None}
    for name, dataset in datasets.items():
        for at, site in enumerate(dataset.at):
            where = f"{source}: datasets.{name}.at[{at}]"
            _known(site, known, where)
            if known[site].store is None:
                raise UserError(f"{where}: expected a cluster with site.store, found {site}")
            room = left[site]
            if room is not None:
                if dataset.size > room:
                    raise UserError(
                        f"{where}: the store of {site} has {room} bytes left, and {name} has {dataset.size}"
                    )
                left[site] = room - dataset.size or 0
    things = tuple(Dataset(name, one.size, tuple(one.at)) for name, one in datasets.items())
    return Sites(tuple(found), tuple(wires.values()), things)


def _known(name: str, known: Mapping[str, Any], where: str) -> None:
    if name not in known:
        raise UserError(f"{where}: expected one of {', '.join(known)}, found {name!r}.{nearest(name, known)}")


def of_site(cluster: ClusterDescription, name: str) -> ClusterDescription:
    """A cluster in the names that it has in a federation."""
    replace = msgspec.structs.replace

    def outward(one: str) -> str:
        return f"{name}:{one}"

    return replace(
        cluster,
        name=name,
        pools=tuple(replace(pool, name=outward(pool.name)) for pool in cluster.pools),
        nodes=tuple(
            replace(node, name=outward(node.name), pools=tuple(map(outward, node.pools)))
            for node in cluster.nodes
        ),
        licences=tuple((outward(licence), amount) for licence, amount in cluster.licences),
    )


def as_one(clusters: Mapping[str, ClusterDescription], sites: Sites) -> ClusterDescription:
    """Clusters, each in the names of its own, as the one cluster of a federation."""
    parts = [of_site(cluster, name) for name, cluster in clusters.items()]
    return ClusterDescription(
        "+".join(clusters),
        tuple(pool for part in parts for pool in part.pools),
        tuple(node for part in parts for node in part.nodes),
        licences=tuple(licence for part in parts for licence in part.licences),
        sites=sites,
    )
