"""What was used before the first start, as a batch system's accounting says.

Each job of it that ended counts from its start to its end, as if it had been seen running: with the
processors that it had, for its account, group and user, and with its QOS' factor. What it had of memory and
generic resources is not told. Of a job that runs on when counting begins only what was until then counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.model import JobDescription, Request
from headway.workload.accounting import Ended
from headway_plugins.accounts.usage import Ledger


def count(
    past: Sequence[Ended],
    ledger: Ledger,
    node_of: Callable[[JobDescription], int],
    rate: Callable[[JobDescription, int], float],
    now: float,
    epoch: float,
) -> tuple[dict[str, float], float]:
    """Each of the jobs that had begun by ``now`` -> its end, and the units x seconds of all of them, which
    are in the ledger then. ``now`` and ends are absolute seconds, ``epoch`` seconds since 1970 at their 0."""
    over: dict[str, float] = {}
    total = 0.0
    for job in past:
        end = job.end - epoch
        start = end - job.seconds if job.start is None else job.start - epoch
        if start >= now or not job.seconds:
            continue
        about = JobDescription(
            job.job_id, start, Request(max(job.processors, 1), job.seconds), job.pool,
            user=job.user, group=job.group, account=job.account, qos=job.qos,
        )  # fmt: skip
        units, until = rate(about, job.processors), min(end, now)
        ledger.begin(job.job_id, node_of(about), units, start)
        ledger.end(job.job_id, until)
        over[job.job_id] = end
        total += units * max(until - max(start, ledger.reset_at), 0.0)
    return over, total
