"""Section 2.1 of the paper on real processes: what two tiers cost and bring on the processors of this
machine.

A process in front computes for a share of its time and sleeps for the rest; one in the background, under
SCHED_IDLE on the same processor, computes all the time. How much each gets done is counted in equal pieces
of work, alone and together. A job of several processes meets at a barrier after each piece. The paper did
that with two virtual machines on each processor.

What others use of these processors meanwhile is measured beside it (``/proc/stat``, without what our own
processes used). A measurement that they disturbed is made again, and if it is disturbed each time nothing is
said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_STAT = Path("/proc/stat")
#: How often a measurement that others disturbed is made, and how many are taken of which the median counts.
_TRIES = 4
_ROUNDS = 3

#: A process: ``role processor share seconds start [pipe ends of its neighbours]``; prints pieces a second.
_PROGRAM = """
import os, sys, time
role, cpu = sys.argv[1], int(sys.argv[2])
share, begin, seconds = map(float, sys.argv[3:6])
left, right = map(int, sys.argv[6:8])
os.sched_setaffinity(0, {cpu})
if role == "behind":
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
def piece():
    total = 0
    for number in range(20000):
        total += number * number
    return total
used = time.thread_time()
for _ in range(20):
    piece()
cost = (time.thread_time() - used) / 20
while time.time() < begin:
    time.sleep(0.002)
done, end, cpu_time = 0, begin + seconds, time.thread_time()
while time.time() < end:
    piece()
    done += 1
    if share < 1:
        time.sleep(cost * (1 - share) / share)
    if left >= 0:
        os.write(right, b"x")
        if not os.read(left, 1):
            break
print(done / seconds, (time.thread_time() - cpu_time) / seconds)
"""


class NotMeasured(Exception):
    """Why it cannot be measured here."""


@dataclass(frozen=True)
class TwoTiers:
    """What was measured with one CPU use of the process in front. Shares."""

    use: float
    #: Of its speed that the process in front lost.
    loss: float
    #: Of the idle cycles that a job behind made something of, of one process and of two.
    single: float
    several: float


def measure(uses: Sequence[float], seconds: float, others: float = 0.02) -> list[TwoTiers]:
    """Measure for each CPU use in front, ``seconds`` each time; what is told is the median of three.

    All processes are of this session, so a kernel that groups processes by session weighs them against each
    other. Raises :class:`NotMeasured` where there is no SCHED_IDLE, or where others use more than the share
    ``others`` of a processor each time.
    """
    if not hasattr(os, "SCHED_IDLE"):
        raise NotMeasured("this system has no SCHED_IDLE")
    processors = sorted(os.sched_getaffinity(0))[:2]
    first = processors[0]

    def run(*processes: tuple[str, int, float]) -> list[tuple[float, float]]:
        return _undisturbed(lambda: _run(processes, seconds), others)

    behind = ("behind", first, 1.0)
    several = [("behind", cpu, 1.0) for cpu in processors]
    found = []
    for use in uses:
        front, fronts = ("front", first, use), [("front", cpu, use) for cpu in processors]
        rounds = []
        for _ in range(_ROUNDS):
            # What is compared is measured one right after the other.
            (alone, cpu), (full, _) = run(front)[0], run(behind)[0]
            together, harvested = run(front, behind)
            if not alone or not full:
                raise NotMeasured("a process alone on one of its processors got nothing done")
            idle, of_several = max(1.0 - cpu, 1e-3), float("nan")
            if len(processors) > 1 and (whole := min(rate for rate, _ in run(*several))):
                rates = run(*fronts, *several)[len(fronts) :]
                of_several = min(rate for rate, _ in rates) / whole / idle
            rounds.append((cpu, 1.0 - together[0] / alone, harvested[0] / full / idle, of_several))
        found.append(TwoTiers(*(median(values) for values in zip(*rounds, strict=True))))
    return found


#: Pieces a second and CPU use of each process, and what others used of the worst of their processors.
Run = tuple[list[tuple[float, float]], float]


def _undisturbed(run: Callable[[], Run], others: float) -> list[tuple[float, float]]:
    """What a run found in which others used at most so much of a processor; it is made again until then."""
    least = float("inf")
    for _ in range(_TRIES):
        found, disturbed = run()
        if disturbed <= others:
            return found
        least = min(least, disturbed)
    raise NotMeasured(
        f"not measurable beside other work: in {_TRIES} tries others used at least {100 * least:.0f} % of a "
        f"processor, expected at most {100 * others:.0f} %"
    )


def busy_ticks(stat: str) -> dict[int, tuple[int, int]]:
    """From the text of ``/proc/stat``: of each processor the ticks in which it was not idle, and all."""
    found = {}
    for line in stat.splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            # Time for guests is in the first two already.
            ticks = [int(word) for word in words[:8]]
            found[int(name[3:])] = sum(ticks) - sum(ticks[3:5]), sum(ticks)
    return found


def used_by_others(before: str, after: str, ours: Mapping[int, float]) -> float:
    """Of the processors of ``ours``, which says what we used of each (a share), the largest share that
    others used between two texts of ``/proc/stat``."""
    begin, end = busy_ticks(before), busy_ticks(after)
    shares = []
    for cpu, own in ours.items():
        busy, of = (late - early for late, early in zip(end[cpu], begin[cpu], strict=True))
        shares.append(max(0.0, busy / of - own) if of else 1.0)
    return max(shares)


def _run(processes: Sequence[tuple[str, int, float]], seconds: float) -> Run:
    """Let these processes run together."""
    several = [at for at, (role, _, _) in enumerate(processes) if role == "behind"]
    ring: dict[int, tuple[int, int]] = {at: (-1, -1) for at in range(len(processes))}
    pipes: list[int] = []
    if len(several) > 1:
        ends = [os.pipe() for _ in several]
        pipes = [end for pair in ends for end in pair]
        for number, at in enumerate(several):
            ring[at] = (ends[number][0], ends[(number + 1) % len(several)][1])
    begin = time.time() + 1.0
    started = []
    try:
        for at, (role, cpu, share) in enumerate(processes):
            left, right = ring[at]
            own = tuple(end for end in (left, right) if end >= 0)
            command = [sys.executable, "-c", _PROGRAM, role, str(cpu), str(share), str(begin), str(seconds)]
            started.append(
                subprocess.Popen(
                    [*command, str(left), str(right)], stdout=subprocess.PIPE, text=True, pass_fds=own
                )
            )
        for end in pipes:
            os.close(end)
        pipes = []
        time.sleep(max(0.0, begin - time.time()))
        before = _STAT.read_text()
        time.sleep(max(0.0, begin + seconds - time.time()))
        after = _STAT.read_text()
        found = []
        for process in started:
            # One that waits at the barrier is let go when its neighbour has ended.
            out, _ = process.communicate(timeout=120.0 + seconds)
            if process.returncode:
                raise NotMeasured(f"a process ended with {process.returncode}")
            rate, cpu_use = out.split()
            found.append((float(rate), float(cpu_use)))
        ours: dict[int, float] = {}
        for (_, cpu, _), (_, cpu_share) in zip(processes, found, strict=True):
            ours[cpu] = ours.get(cpu, 0.0) + cpu_share
        return found, used_by_others(before, after, ours)
    except subprocess.TimeoutExpired as error:
        raise NotMeasured("the processes did not come to an end") from error
    finally:
        for end in pipes:
            os.close(end)
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
