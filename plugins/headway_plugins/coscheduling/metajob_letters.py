"""What the user of a metajob is written.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5: a user is notified by mail of a reservation that cannot be
fulfilled. Ours: the letter goes to the user that submitted the metajob, by name. The address of the paper's
file is not used: a user could have headway write to any address.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.decisions import Tell
from headway_plugins.coscheduling.live_metajob import LiveMetajob
from headway_plugins.coscheduling.rounds import Made
from headway_plugins.coscheduling.watching import Loss, OnLoss

#: What becomes of a part at a site that does not answer.
_SILENT: dict[OnLoss, str] = {
    "keep": "A part at a site that does not answer may still be there: you are told when the site answers.",
    "cancel_all": "A part at a site that does not answer is given back when the site answers.",
    "replan": "A part at a site that does not answer is given back when the site answers.",
}
_THEN: dict[OnLoss, str] = {
    "keep": "Its other parts stay reserved.",
    "cancel_all": "Its other parts are given back.",
    "replan": "Its other parts are given back, and a new place is searched for.",
}


def of_loss(live: LiveMetajob, lost: Sequence[Loss]) -> Tell:
    """One letter about all parts that were lost at once."""
    kept = live.kept
    parts = "a part" if len(lost) == 1 else f"{len(lost)} parts"
    lines = [f"Metajob {kept.id} has lost {parts}:", ""]
    for loss in lost:
        job = live.job_of(loss.name)
        lines.append(f"  {loss.site}: {loss.name}: {loss.what}{f' (job {job})' if job else ''}")
    lines += ["", _THEN[kept.on_loss]]
    if any(loss.silent for loss in lost):
        lines.append(_SILENT[kept.on_loss])
    if kept.jobs and kept.on_loss != "replan":
        lines.append(
            f"A job without its part waits until you cancel the metajob: headway metajob cancel {kept.id}"
        )
    lines.append(f"What stands now: headway metajob status {kept.id}")
    return Tell(
        kept.user,
        f"metajob {kept.id} has lost {parts}",
        "\n".join(lines),
        f"metajob {kept.id}: {lost[0].what}",
    )


def of_return(live: LiveMetajob, parts: Sequence[Made]) -> Tell:
    """One letter about all parts that are there after all."""
    kept = live.kept
    several = "a part" if len(parts) == 1 else f"{len(parts)} parts"
    lines = [f"Metajob {kept.id} has {several} again, because the site answers:", ""]
    lines += [f"  {part.site}: {part.name}" for part in parts]
    lines += ["", f"What stands now: headway metajob status {kept.id}"]
    return Tell(
        kept.user, f"metajob {kept.id} has {several} again", "\n".join(lines),
        f"metajob {kept.id}: the site answers again",
    )  # fmt: skip
