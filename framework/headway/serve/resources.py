"""What can be read over HTTP: a path, the request that it stands for, and what is answered.

A resource's parameters are the fields of its request, with the same names, types and bounds, so that the
interface's description is made from the same structs as the socket's.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import msgspec.inspect

from headway.inquiry import reports
from headway.journal.starts_report import StartsReport
from headway.measured.report import Measured
from headway.serve.sorting import JobsInOrder
from headway.service import protocol


@dataclass(frozen=True)
class Resource:
    """What can be read under one path."""

    #: Below the version's path; ``{name}`` is the field of the request of that name.
    path: str
    request: type[msgspec.Struct]
    #: The shape of the answer.
    shape: type[msgspec.Struct]
    #: What it is, in a sentence.
    about: str


#: Of version 1.
RESOURCES = (
    Resource("/status", protocol.Status, protocol.Report, "How the daemon is."),
    Resource("/jobs", JobsInOrder, reports.JobPage, "Jobs: places, planned starts, why each waits."),
    Resource("/jobs/{job}", protocol.Explain, protocol.Explained, "A job, what it does and why."),
    Resource("/pools", protocol.Pools, reports.PoolList, "The pools."),
    Resource("/nodes", protocol.Nodes, reports.NodePage, "The nodes."),
    Resource("/bookings", protocol.Bookings, reports.BookingPage, "What is kept for jobs that wait."),
    Resource(
        "/reservations", protocol.Reservations, reports.ReservationPage, "The reservations that are not over."
    ),
    Resource("/cycle", protocol.Cycle, reports.CycleReport, "The last cycle: events and decisions."),
    Resource("/starts", protocol.Starts, StartsReport, "How good planned starts were."),
    Resource("/datasets", protocol.Datasets, reports.DatasetList, "Datasets, copies and stores."),
    Resource("/holes", protocol.Holes, reports.HoleList, "What is free now, and for how long."),
    Resource("/when", protocol.When, reports.TrialReport, "When a job would start if it was submitted now."),
    Resource("/health", protocol.Health, reports.HealthReport, "Whether what must always hold does hold."),
    Resource("/metrics", protocol.Metrics, Measured, "What the daemon measures; as text: /metrics."),
    Resource("/plugins/{name}", protocol.PluginQuestion, protocol.Told, "What only a plugin knows."),
)


def request_of(resource: Resource, query: Iterable[tuple[str, str]], path: Mapping[str, str]) -> Any:
    """The request that path and query name: text by field. A list is a field that stands several times; an
    amount of something is ``NAME:COUNT``. :class:`msgspec.ValidationError` says what is wrong with it."""
    lists = lists_of(resource.request)
    given: dict[str, Any] = dict(path)
    for name, text in query:
        if name in lists:
            given.setdefault(name, []).append(_amount(name, text) if lists[name] is Listed.AMOUNTS else text)
        elif name in given:
            raise msgspec.ValidationError(f"Expected `{name}` once")
        else:
            given[name] = text
    return msgspec.convert(given, resource.request, strict=False)


class Listed(enum.Enum):
    """What a list in a request has."""

    WORDS = enum.auto()
    AMOUNTS = enum.auto()


@cache
def lists_of(request: type[msgspec.Struct]) -> Mapping[str, Listed]:
    """The fields of a request that are lists, and of what."""
    told = msgspec.inspect.type_info(request)
    assert isinstance(told, msgspec.inspect.StructType)
    return {
        one.name: Listed.WORDS if isinstance(one.type.item_type, msgspec.inspect.StrType) else Listed.AMOUNTS
        for one in told.fields
        if isinstance(one.type, msgspec.inspect.VarTupleType)
    }


def _amount(field: str, text: str) -> tuple[str, str]:
    name, colon, count = text.rpartition(":")
    if not colon:
        raise msgspec.ValidationError(f"Expected NAME:COUNT, got {text!r} - at `$.{field}`")
    return name, count
