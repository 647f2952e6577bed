"""What marks and labels say of jobs that go to another cluster, or came from one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headway_adapters.polling.resubmission import CAME_FROM, COPY_OF, GOES_TO, LEAVING, Label, label_in
from headway_adapters.slurm import marker, values
from headway_adapters.slurm.reader.documents import JobRecord


def routed(record: JobRecord, words: Collection[str]) -> dict[str, Any]:
    """The attributes of a job that goes or came. Users cannot write them: each stands for a mark, or is
    absent, whatever a comment says; the label of a copy that has no mark yet hides a job that its user holds
    anyway. ``words``: of the comment."""
    comment = values.text(record.admin_comment)
    came, mark = marker.origin(comment), marker.route(comment)
    found: dict[str, Any] = {CAME_FROM: came.partition("@")[0]} if came else {}
    if mark is not None:
        found |= {GOES_TO: mark.other} if mark.kind == LEAVING else {COPY_OF: mark.name}
    elif label := unmarked_label(record, words):
        found[COPY_OF] = label.original
    return found


def unmarked_label(record: JobRecord, words: Collection[str]) -> Label | None:
    """The label of a job that may be a copy, submitted just now: its user still holds it."""
    if values.text(record.state_reason) != "JobHeldUser" or values.text(record.nodes):
        return None
    comment = values.text(record.admin_comment)
    return label_in(words) if not comment or comment.startswith(marker.NEW) else None


def marks_of(comment: str) -> dict[str, Any]:
    """The fields of :class:`headway_adapters.slurm.reader.detail.Detail` that an AdminComment gives."""
    return {"route": marker.route(comment), "came": marker.origin(comment)}


def route_barrier(comment: str) -> str:
    """Why the AdminComment of a job that is on its way keeps it from starting; "" if it does not."""
    mark = marker.route(comment)
    if mark is None:
        return ""
    if mark.kind == LEAVING:
        return f"it goes to another cluster, where it is {mark.other}"
    return f"a copy of job {mark.name}, which is not settled yet"


def submitted_first(record: JobRecord) -> float | None:
    """When a job that came from another cluster was submitted there."""
    _, at, seconds = marker.origin(values.text(record.admin_comment)).partition("@")
    return float(seconds) if at else None
