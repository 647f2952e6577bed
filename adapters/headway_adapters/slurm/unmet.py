"""Jobs of which Slurm has said, when they were to be started, that they depend on others.

headway knows most of what Slurm goes by, but Slurm remembers more: that an element of an array failed, say,
which it lists no longer. Asking again would be answered so again, so such a job waits until Slurm writes its
dependency anew, as met or as never to be met, which it does within a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import msgspec

from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm.reader import Detail


class Unmet:
    """What Slurm has said; laid over each look."""

    def __init__(self) -> None:
        #: Job -> its dependency, as Slurm wrote it when it said so.
        self._texts: dict[str, str] = {}

    def learned(self, job_id: str, text: str) -> None:
        """Slurm says that the job depends on something, of which it writes ``text``."""
        self._texts[job_id] = text

    def show(self, jobs: MutableMapping[str, SnapshotJob], details: Mapping[str, Detail]) -> None:
        """Hold the jobs of ``jobs``, as Slurm lists them, of which nothing new is written."""
        for key, text in list(self._texts.items()):
            detail, job = details.get(key), jobs.get(key)
            if detail is None or job is None or detail.dependency != text:
                del self._texts[key]
            elif not job.job.held:
                why = f"Slurm says that its dependency {text} is not met"
                held = msgspec.structs.replace(job.job, held=True)
                jobs[key] = msgspec.structs.replace(job, job=held, held_by="system", reason=why)
