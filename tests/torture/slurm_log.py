"""What slurmctld writes in its log about itself: what it had forgotten, and what it requeued."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from headway_adapters.slurm import hostlist

#: A line: seconds since the epoch, and the text.
Line = tuple[float, str]


def lines(log: str) -> Iterator[Line]:
    for line in log.splitlines():
        if line.startswith("[") and "] " in line:
            stamp, text = line[1:].split("] ", 1)
            try:
                yield datetime.fromisoformat(stamp).timestamp(), text
            except ValueError:
                continue


def recoveries(log: Sequence[Line]) -> list[tuple[float, set[str]]]:
    """Each start of slurmctld that came so far: when, and the numbers of the jobs (of arrays as a whole) that
    it still had."""
    found: list[tuple[float, set[str]]] = []
    at, known = 0.0, set[str]()
    for now, text in log:
        if " started on cluster " in text:
            at, known = now, set()
        elif one := re.match(r"Recovered JobId=(\d+)", text):
            known.add(one[1])
        elif text.startswith("Recovered information about "):
            found.append((at, known))
    return found


def own_requeues(
    log: Sequence[Line], outages: Sequence[tuple[str, float, float]] = ()
) -> Iterator[tuple[str, float, str]]:
    """The requeues that it made by itself: the job, when, and its word for it.

    ``outages``: the nodes whose daemons were dead, from when until when; a launch there cannot succeed.
    """
    begun: dict[str, tuple[float, set[str]]] = {}
    unfinished: dict[str, float] = {}
    for number, (at, text) in enumerate(log):
        if started := re.match(r"sched: Allocate JobId=([0-9_]+)\S* NodeList=(\S+)", text):
            begun[started[1]] = at, set(hostlist.expand(started[2]))
        elif completing := re.match(r"_sync_nodes_to_comp_job: JobId=([0-9_]+)\S* in completing state", text):
            unfinished[completing[1]] = at
        elif missing := re.match(r"Batch JobId=([0-9_]+)\S* missing from batch node .* Requeuing job", text):
            yield missing[1], at, "its node had no such job any more (missing from batch node)"
        elif requeued := re.match(r"Requeuing JobId=([0-9_]+)", text):
            if at - unfinished.pop(requeued[1], float("-inf")) <= 1.0:
                yield requeued[1], at, "it did once more what it had not saved as done when it was killed"
                continue
            since, its = begun.get(requeued[1], (0.0, set()))
            if any(node in its and dead - 1 <= since <= back + 1 for node, dead, back in outages):
                yield requeued[1], at, "the daemon of its node was dead when it was launched"
                continue
            # Another thread writes that of the node, before or after.
            for beside, word in log[max(number - 50, 0) : number + 50]:
                refused = re.match(r"error: Duplicate jobid on nodes (\S+),", word)
                if refused and abs(beside - at) <= 1.0 and its & set(hostlist.expand(refused[1])):
                    yield requeued[1], at, "its node refused a job that ran there already (Duplicate jobid)"
                    break
