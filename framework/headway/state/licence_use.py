"""How much there is of each licence, and how much of it each job has."""

from __future__ import annotations

from headway.state.records import Job


class Licences:
    """Totals and holders of licences; a watcher of the jobs that take and give back."""

    def __init__(self, total: dict[str, int]) -> None:
        self.total = total
        #: Name -> jobs that have some -> how much.
        self.holders: dict[str, dict[Job, int]] = {}
        self._has: dict[Job, tuple[tuple[str, int], ...]] = {}
        #: A job took or gave back some, or a total changed, since this was set to False.
        self.changed = False

    def used(self, name: str) -> int:
        """What running jobs have of it."""
        return sum(self.holders.get(name, {}).values())

    def took(self, job: Job) -> None:
        if wanted := job.request.licences:
            self.changed = True
            self._has[job] = wanted
            for name, amount in wanted:
                holders = self.holders.setdefault(name, {})
                holders[job] = holders.get(job, 0) + amount

    def took_others(self, job: Job) -> None:
        """The licences of a running job changed."""
        self.gave(job)
        self.took(job)

    def gave(self, job: Job) -> None:
        for name, _ in self._has.pop(job, ()):
            self.changed = True
            self.holders[name].pop(job, None)
