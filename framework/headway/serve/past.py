"""What can be read of the past over HTTP, which the journal tells: paths, parameters, and what is answered.

Pages go by an entry's number, so that a reader goes on where it stopped, also a week later.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from headway.inquiry import past_reports as reports
from headway.serve.resources import Resource

#: Entries of a page, at most, and without another word.
MOST, USUAL = 500, 100

_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Kind = Annotated[str, msgspec.Meta(pattern="^([A-Z][A-Za-z]{0,63})?$")]
_Time = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
#: Run, cycle and position; each is below 2**63.
_Number = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,17}\.[0-9]{1,17}\.[0-9]{1,17})?$")]
_Count = Annotated[int, msgspec.Meta(ge=1, le=MOST)]


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all pages share: recorded from ``from`` on, before ``until`` (absolute seconds); behind the entry
    with the number ``after``; the newest first, or the oldest."""

    since: _Time | None = msgspec.field(default=None, name="from")
    until: _Time | None = None
    after: _Number = ""
    count: _Count = USUAL
    oldest_first: bool = False

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError(f"Expected `from` <= `until`, got {self.since:g} and {self.until:g}")


class Decisions(_Asked, frozen=True, tag_field="request", tag="past-decisions"):
    """Decisions; "": about any job, of any kind."""

    job: _Name = ""
    kind: _Kind = ""


class Events(_Asked, frozen=True, tag_field="request", tag="past-events"):
    """Events; "": about any job, of any kind."""

    job: _Name = ""
    kind: _Kind = ""


class Work(_Asked, frozen=True, tag_field="request", tag="past-work"):
    """Jobs that ran, by their ends; "": in any pool."""

    pool: _Name = ""


class JobsPast(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="request", tag="past-of-job"
):
    """All that is recorded of a job."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


Question = Decisions | Events | Work | JobsPast

#: Of version 1.
HISTORY = (
    Resource(
        "/history/decisions", Decisions, reports.DecisionHistory,
        "Decisions of the past, and what became of them.",
    ),
    Resource("/history/events", Events, reports.EventHistory, "Events of the past."),
    Resource(
        "/history/work", Work, reports.WorkHistory,
        "Jobs that ran, where and how long, by their ends. What ran at a time has ended since, or runs now.",
    ),
    Resource("/history/jobs/{job}", JobsPast, reports.JobHistory, "What the journal tells of a job."),
)  # fmt: skip
