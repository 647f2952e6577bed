"""The jobs of each user, kept from one cycle to the next: what most questions are about."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headway.events import Event, JobChanged, JobEnded, JobSubmitted
from headway.state import Job, State


class JobsOfUsers:
    """Which jobs a state has of each user. Kept from the first question on, so that no question looks at all
    jobs."""

    def __init__(self) -> None:
        #: User -> jobs by id; None: nobody has asked yet.
        self._jobs: dict[str, dict[str, Job]] | None = None
        #: Job id -> the user under whom the job is kept.
        self._user: dict[str, str] = {}

    def of(self, state: State, user: str) -> Collection[Job]:
        """The jobs of a user that are not over."""
        if self._jobs is None or len(self._user) != len(state.jobs):
            self._jobs, self._user = {}, {}
            for job in state.jobs.values():
                self._put(job)
        return self._jobs.get(user, {}).values()

    def note(self, events: Sequence[Event], state: State) -> None:
        """These events have become part of the state."""
        if self._jobs is None:
            return
        for event in events:
            if isinstance(event, JobEnded):
                self._drop(event.job_id)
            elif isinstance(event, JobSubmitted | JobChanged):
                self._drop(event.job.id)
                if (job := state.jobs.get(event.job.id)) is not None:
                    self._put(job)

    def _put(self, job: Job) -> None:
        assert self._jobs is not None
        self._user[job.id] = user = job.user
        self._jobs.setdefault(user, {})[job.id] = job

    def _drop(self, job_id: str) -> None:
        assert self._jobs is not None
        user = self._user.pop(job_id, None)
        if user is not None:
            jobs = self._jobs[user]
            jobs.pop(job_id, None)
            if not jobs:
                del self._jobs[user]
