"""Jobs that go to another cluster by resubmission: what both ends must offer, and the marks they go by.

A job that goes is submitted again at its new cluster, held, as a *copy*; then the original is cancelled.
Everything that must survive a crash stands in marks that only administrators can write:

============  ==============  ==================================================================
mark          at              meaning
============  ==============  ==================================================================
``COPY``      the copy        it is not a job yet: the original still is
``LEAVING``   the original    it is to be cancelled in favour of its copy, and starts no more
``SEALED``    the copy        from now on the original may be cancelled in its favour
============  ==============  ==================================================================

A copy that has become the job says for good where it came from (:attr:`Standing.came`). A *label* is a word
of the copy's comment, which its user could write as well: by it a copy is found of which it is unknown
whether it was submitted, and nothing else follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from headway.adapter import Check, Outcome
from headway.model import JobDescription
from headway.model.sites import Intake

COPY, SEALED, LEAVING = "copy", "sealed", "leaving"
#: Attributes of jobs: a copy that is no job yet, an original on its way, a job that came from elsewhere.
COPY_OF, GOES_TO, CAME_FROM = "copy_of", "goes_to", "came_from"
ATTRIBUTES = frozenset({COPY_OF, GOES_TO, CAME_FROM})
#: The word of a comment that is a label: ``routed=north:17/3f9a``.
ROUTED = "routed"
#: A job as both ends name it: its cluster and its id there.
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[A-Za-z0-9][A-Za-z0-9._\[\]-]{0,99}")
_LABEL = re.compile(rf"({PLACE.pattern})/([0-9a-f]{{1,32}})")


class Mark(msgspec.Struct, frozen=True):
    """What stands at a copy or an original."""

    kind: str
    #: Of a copy its original, of an original its copy; as :data:`PLACE`.
    other: str
    #: Of a copy: the job's name for all, and when it was submitted first (absolute seconds).
    name: str = ""
    submitted: int = 0
    #: Of an original: how often it had gone back to the queue when its copy was submitted. If that happened
    #: more often since, or if it has nodes, it ran.
    restarts: int = 0


class Label(msgspec.Struct, frozen=True):
    """What a copy's comment says."""

    #: The original, as :data:`PLACE`.
    original: str
    #: Drawn anew for each route: no user knows it before the submission.
    key: str

    @property
    def word(self) -> str:
        """The word of the comment."""
        return f"{ROUTED}={self.original}/{self.key}"


def label_in(words: Collection[str]) -> Label | None:
    """The label among the words of a comment."""
    for word in words:
        name, _, text = word.strip().partition("=")
        if name == ROUTED and (found := _LABEL.fullmatch(text)):
            return Label(found[1], found[2])
    return None


class Standing(msgspec.Struct, frozen=True):
    """A job as its batch system shows it now, as far as a route depends on it."""

    job_id: str
    user: str
    #: "pending", "running" (on nodes in any way), "ended", or "unknown": that cannot be said now.
    state: str
    #: It runs, or did; of an original with a mark: since its copy was submitted.
    ran: bool = False
    cancelled: bool = False
    mark: Mark | None = None
    #: Of a job that waits, that its user holds, and that has no mark.
    label: Label | None = None
    #: It came from elsewhere: its name for all.
    came: str = ""


class Parcel(msgspec.Struct, frozen=True):
    """All that is needed to submit a job again."""

    job: JobDescription
    script: bytes
    #: What its user wrote, without a label.
    comment: str
    #: Processes, and processors of each; 0: not said.
    tasks: int = 0
    processors_per_task: int = 0
    #: The least and most nodes; 0: not said.
    least_nodes: int = 0
    most_nodes: int = 0
    directory: str = ""
    output: str = ""
    error: str = ""
    #: How often it has gone back to the queue.
    restarts: int = 0


class Resubmission(Protocol):
    """What a batch system's adapter offers for routes between clusters. On the adapter's thread."""

    def standing(self, job_ids: Collection[str]) -> Mapping[str, Standing]:
        """All jobs with a mark, a label or an origin, and these jobs. One that is missing is certainly not
        known to the batch system, nor to its accounting.

        Raises :class:`headway.errors.Failure`."""

    def parcel(self, job_id: str) -> Parcel:
        """A waiting job, to be sent. Raises :class:`headway_adapters.polling.words.Unfit` for a job that
        stays, and :class:`headway.errors.Failure`."""

    def submit(self, parcel: Parcel, pool: str, label: Label, intake: Intake) -> Outcome:
        """Submit a copy, held, as the job's user. Whether it is there, a later :meth:`standing` tells. Raises
        :class:`headway_adapters.polling.words.Unfit`."""

    def mark(self, job_id: str, mark: Mark) -> Outcome:
        """Write a mark, and hold the job so that its user cannot release it."""

    def settle(self, job_id: str) -> Outcome:
        """A sealed copy is the job from now on."""

    def unmark(self, job_id: str) -> Outcome:
        """An original is a job like any other again."""

    def cancel(self, job_id: str) -> Outcome:
        """Cancel a job only if it waits."""


class IntakeCheck(Protocol):
    """What ``headway check`` asks about jobs that come from other clusters. Nothing is changed."""

    def leavers(self) -> Collection[str]:
        """Users of waiting jobs that may go to another cluster.

        Raises :class:`headway.errors.HeadwayError`."""

    def check(self, intake: Intake, users: Collection[str]) -> Check:
        """Whether jobs of these users can be submitted here."""
