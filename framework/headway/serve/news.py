"""What becomes of a picture, as items of the stream."""

from __future__ import annotations

from collections.abc import Mapping

from headway.serve.picture import Picture
from headway.serve.stream import EventItem, JobsItem, Stream, jobs_item
from headway.service.changes import Change, Cycled, Decided, Happened, JobRows


class News:
    """Folds changes into a picture, and puts what they say into the stream once the picture is whole."""

    def __init__(self, picture: Picture, stream: Stream) -> None:
        self._picture = picture
        self._stream = stream
        self._cycles: list[Cycled] = []
        #: Jobs that changed and that are gone since the last item, and the user of each.
        self._changed: dict[str, str] = {}
        self._gone: dict[str, str] = {}

    def fold(self, change: Change) -> None:
        if self._picture.whole:
            if isinstance(change, Cycled):
                self._cycles.append(change)
            elif isinstance(change, JobRows):
                self._note(change)
        self._picture.fold(change)

    def tell(self) -> None:
        """Readers of the stream are told what was folded."""
        for cycle in self._cycles:
            self._stream.put("cycle", cycle.report)
            for decided in cycle.decided:
                self._stream.put("decision", decided.report, _of_its_user(decided))
            for happened in cycle.happened:
                item = EventItem(happened.kind, happened.at, happened.job, happened.node)
                self._stream.put("event", item, _of_its_job(happened, item))
        if self._changed or self._gone:
            self._stream.put("jobs", jobs_item(self._changed, self._gone), self._of_users())
        if self._cycles or self._changed or self._gone:
            self._cycles, self._changed, self._gone = [], {}, {}
            self._stream.tell()

    def _note(self, rows: JobRows) -> None:
        jobs = self._picture.jobs
        for job_id in rows.gone:
            if (row := jobs.get(job_id)) is not None:
                self._gone[job_id] = row.report.user
                self._changed.pop(job_id, None)
        for row in rows.rows:
            self._changed[row.report.id] = row.report.user
            self._gone.pop(row.report.id, None)

    def _of_users(self) -> Mapping[str, JobsItem]:
        mine: dict[str, tuple[list[str], list[str]]] = {}
        for at, ids in enumerate((self._changed, self._gone)):
            for job_id, user in ids.items():
                mine.setdefault(user, ([], []))[at].append(job_id)
        return {user: jobs_item(*both) for user, both in mine.items()}


def _of_its_user(decided: Decided) -> Mapping[str, object]:
    return {decided.user: decided.own or decided.report} if decided.user else {}


def _of_its_job(happened: Happened, item: EventItem) -> Mapping[str, object] | None:
    """What is about no job may be known to all."""
    if not happened.job:
        return None
    return {happened.user: item} if happened.user else {}
