"""What a scheduler knows about the CPU use of a job's processes: what was given, with an error, or
nothing."""

from __future__ import annotations

from random import Random

from headway.state import Job


class Usage:
    """Shares of a processor, in (0, 1]."""

    def __init__(self, known: bool, error: float, seed: int) -> None:
        """``error``: what is known of a job is wrong by a factor between 1 - error and 1 + error, which is
        drawn for each job by its id and ``seed``."""
        self.known = known
        self._error = error
        self._seed = seed

    def of(self, job: Job) -> float:
        """What each process of the job is taken to use; all of its processor if that is not known."""
        if not self.known:
            return 0.0
        use = job.cpu
        if use is None:
            return 1.0
        if self._error:
            draw = Random(f"{self._seed} error of job {job.id}").uniform(-self._error, self._error)
            use = min(max(use * (1.0 + draw), 0.01), 1.0)
        return use
