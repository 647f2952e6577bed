"""A job that was told to go back to the queue, and what LSF shows of it until it is there.

``brequeue`` ends the job first. Then ``bjobs`` shows EXIT (code 130, or another, if the job catches the
signals) until mbatchd's next round, which a volclava 2.2 was seen to take up to 10 s; only then it is PEND.
Nothing in ``bjobs`` tells this EXIT from an end. ``bhist`` does: ``Signal <REQUEUE_PEND> requested``, and no
``Pending:`` after it yet. So each EXIT is asked about once before it is told, and a job that is on its way
back counts as running until it is in the queue: it has not ended, no job that waits for its end may start,
and its place is not given away before LSF shows it free.

A requeue of headway's own is known without ``bhist``, whose file may lag behind on another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import msgspec

from headway.errors import Failure
from headway_adapters.lsf.listing import Ending, Facts, Row
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.snapshot import Snapshot

#: How long an EXIT is no end after a requeue of headway's own, whatever ``bhist`` says, seconds.
OWN_GRACE = 60.0
#: How long after a requeue that ``bhist`` tells of, seconds; an LSF whose rounds take longer is not known.
TOLD_GRACE = 300.0
#: An EXIT that is not known from before and is older than this (seconds) is an end.
_RECENT = 120.0
_QUEUED = ("PEND", "PSUSP")


class Requeues:
    """Tells the EXIT of a requeue from an end. Used on the looking thread, but for :meth:`ordered`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        #: Job -> when headway asked for its requeue.
        self._own: dict[str, float] = {}
        #: Job -> when it was first seen to be on its way back.
        self._going: dict[str, float] = {}
        #: Jobs whose EXIT is known to be an end.
        self._over: set[str] = set()

    def ordered(self, job_id: str) -> None:
        """Headway has asked for a requeue of this job. On any thread."""
        self._own[job_id] = self._monotonic()

    def sort_out(
        self,
        rows: dict[str, Row],
        facts: Mapping[str, Facts],
        before: Snapshot | None,
        now: float,
        endings: Callable[[Collection[str]], Mapping[str, Ending]],
        notes: set[str],
    ) -> None:
        """Make a row of a job that is on its way back to the queue one of a running job.

        ``endings`` asks ``bhist``. Raises :class:`Unanswered` when it cannot be asked now.
        """
        at = self._monotonic()
        for key, since in list(self._own.items()):
            back = key in rows and rows[key].stat in _QUEUED
            if back or at - since >= OWN_GRACE:
                self._own.pop(key, None)
        left = {key for key, row in rows.items() if row.stat == "EXIT" or self._own_end(key, row)}
        self._over &= left
        self._going = {key: since for key, since in self._going.items() if key in left}
        for key in [key for key in left if self._is_old(key, rows[key], facts.get(key), before, now)]:
            self._over.add(key)
        asked = sorted(left - self._over)
        if not asked:
            return
        try:
            told = endings(asked)
        except Unanswered:
            raise
        except Failure as error:
            # bhist is not there: an EXIT is what it looks like.
            notes.add(f"a job that is requeued looks ended for some seconds: {error}")
            told = {}
        for key in asked:
            ending = told.get(key)
            going = ending is not None and ending.state != "ended"
            since = self._going.setdefault(key, at)
            if (going and at - since < TOLD_GRACE) or key in self._own:
                rows[key] = msgspec.structs.replace(rows[key], stat="RUN")
            else:
                self._over.add(key)
                self._going.pop(key, None)

    def _own_end(self, key: str, row: Row) -> bool:
        """A job that catches the signals may end well although it is requeued."""
        return row.stat == "DONE" and key in self._own

    def _is_old(self, key: str, row: Row, told: Facts | None, before: Snapshot | None, now: float) -> bool:
        known = before.jobs.get(key) if before is not None else None
        if known is not None:
            return known.state == "ended" and key not in self._own
        ended = row.ended if row.ended is not None else told.ended if told is not None else None
        return ended is not None and now - ended > _RECENT
