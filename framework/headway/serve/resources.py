"""What can be read over HTTP: a path, the request that it stands for, and what is answered.

A resource's parameters are the fields of its request, with the same names, types and bounds, so that the
interface's description is made from the same structs as the socket's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headway.inquiry import reports
from headway.journal.starts_report import StartsReport
from headway.service import protocol


@dataclass(frozen=True)
class Resource:
    """What can be read under one path."""

    #: Below the version's path; ``{name}`` is the field of the request of that name.
    path: str
    request: type[protocol.Status | protocol.Question]
    #: The shape of the answer.
    shape: type[msgspec.Struct]
    #: What it is, in a sentence.
    about: str


#: Of version 1.
RESOURCES = (
    Resource("/status", protocol.Status, protocol.Report, "How the daemon is."),
    Resource("/jobs", protocol.Jobs, reports.JobPage, "Jobs: places, planned starts, why each waits."),
    Resource("/jobs/{job}", protocol.Explain, protocol.Explained, "A job, what it does and why."),
    Resource("/pools", protocol.Pools, reports.PoolList, "The pools."),
    Resource("/nodes", protocol.Nodes, reports.NodePage, "The nodes."),
    Resource("/bookings", protocol.Bookings, reports.BookingPage, "What is kept for jobs that wait."),
    Resource("/cycle", protocol.Cycle, reports.CycleReport, "The last cycle: events and decisions."),
    Resource("/starts", protocol.Starts, StartsReport, "How good planned starts were."),
    Resource("/datasets", protocol.Datasets, reports.DatasetList, "Datasets, copies and stores."),
    Resource("/holes", protocol.Holes, reports.HoleList, "What is free now, and for how long."),
    Resource("/when", protocol.When, reports.TrialReport, "When a job would start if it was submitted now."),
    Resource("/plugins/{name}", protocol.PluginQuestion, protocol.Told, "What only a plugin knows."),
)


def request_of(resource: Resource, given: dict[str, Any]) -> protocol.Status | protocol.Question:
    """The request that path and query name: text by field. :class:`msgspec.ValidationError` says what is
    wrong with it."""
    return msgspec.convert(given, resource.request, strict=False)
