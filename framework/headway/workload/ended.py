"""A job that ended, as accounting tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """A job that ended. Times are in seconds since 1970, or of the cluster's clock."""

    job_id: str
    name: str
    user: str
    #: What its user wrote about it.
    comment: str
    #: Its partition or queue.
    pool: str
    #: 0: not told.
    nodes: int
    processors: int
    #: How long it ran; when it ended.
    seconds: float
    end: float
    completed: bool
    #: None: not told, or it never started.
    submit: float | None = None
    start: float | None = None
    #: Seconds: how long it might run at most; None: not told, or no limit.
    limit: float | None = None
    #: Where it stands in the text, from 1.
    line: int = 0
    #: Whose account or project (LSF), group and QOS it was; "": not told.
    account: str = ""
    group: str = ""
    qos: str = ""
    #: A person ended it, or took it out of the queue.
    cancelled: bool = False
