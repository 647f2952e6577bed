"""The holder of a job: headway, the submit filter for it, its user, an administrator, or Slurm itself."""

from __future__ import annotations

from dataclasses import dataclass

from headway_adapters.slurm import marker, values
from headway_adapters.slurm.reader.documents import JobRecord

#: How a comment ends whose job its user has released: the submit filter's word, since the release itself
#: would have let Slurm start it.
RELEASED = "headway:released"
#: And how one ends whose job its user holds, though it was held already: Slurm knows one hold a job.
USER_HOLD = "headway:user-hold"


@dataclass(frozen=True)
class Hold:
    """The holder of a job."""

    held: bool = False
    #: The submit filter does, for headway.
    from_filter: bool = False
    #: As :attr:`SnapshotJob.held_by`; "" if it is not held.
    by: str = ""
    #: Why headway may not start it; "" if it may.
    why: str = ""


def hold_of(record: JobRecord, hold_marker: str) -> Hold:
    """The holder of a job, if it is held. ``hold_marker``: how a comment begins by which an
    administrator holds it."""
    comment, reason = values.text(record.admin_comment), values.text(record.state_reason)
    described = values.text(record.state_description)
    if values.number(record.priority) != 0 and record.hold is not True:
        return Hold()
    _, word = said_by_user(values.text(record.comment))
    # Slurm counts the hold after a failed launch as the user's. An administrator's "scontrol hold" makes
    # it an administrator's, and leaves the description.
    if "launch failed" in described.lower() and reason != "JobHeldAdmin":
        return Hold(True, by="system", why=described)
    ours = word == RELEASED or (comment.startswith(marker.NEW) and not word)
    from_filter = ours and reason != "JobHeldAdmin"
    by, why = _holder(reason, described, comment, hold_marker, from_filter=from_filter)
    if word == USER_HOLD and not why:
        by, why = "user", "held by its user"
    return Hold(True, from_filter, by, why)


def _holder(
    reason: str, described: str, comment: str, hold_marker: str, *, from_filter: bool
) -> tuple[str, str]:
    """The holder of a held job, and why headway may not start it ("" if it may)."""
    if from_filter:
        return "headway", ""
    if comment.split(":")[0].split()[:1] == [hold_marker]:
        return "administrator", f"held by an administrator ({comment})"
    if reason == "JobHeldUser":
        return "user", described or "held by its user"
    return "headway", ""


def said_by_user(comment: str) -> tuple[str, str]:
    """A comment without the submit filter's word at its end, and that word: :data:`RELEASED`,
    :data:`USER_HOLD`, or ""."""
    for word in (RELEASED, USER_HOLD):
        if comment.endswith(word):
            return comment.removesuffix(word).rstrip(), word
    return comment, ""
