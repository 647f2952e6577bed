"""Section 2.1 of the paper on real processes: what two tiers cost and bring on the processors of this
machine.

A process in front computes for a share of its time and sleeps for the rest; one in the background, under
SCHED_IDLE on the same processor, computes all the time. How much each gets done is counted in equal pieces
of work, alone and together. A job of several processes meets at a barrier after each piece. The paper did
that with two virtual machines on each processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

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


def measure(uses: Sequence[float], seconds: float, alone: float = 0.9) -> list[TwoTiers]:
    """Measure for each CPU use in front, ``seconds`` each time.

    All processes are of this session, so a kernel that groups processes by session weighs them against each
    other. Raises :class:`NotMeasured` where there is no SCHED_IDLE, or where others keep the processors so
    busy that a process alone gets less than the share ``alone`` of one.
    """
    if not hasattr(os, "SCHED_IDLE"):
        raise NotMeasured("this system has no SCHED_IDLE")
    processors = sorted(os.sched_getaffinity(0))[:2]
    first = processors[0]
    busy = min(_run([("front", cpu, 1.0)], seconds)[0][1] for cpu in processors)
    if busy < alone:
        raise NotMeasured(
            f"the machine is busy: a process alone on one of its processors got {100 * busy:.0f} % of it"
        )
    alone_single = _run([("behind", first, 1.0)], seconds)[0][0]
    several = [("behind", cpu, 1.0) for cpu in processors]
    alone_several = min(rate for rate, _ in _run(several, seconds)) if len(processors) > 1 else 0.0
    found = []
    for use in uses:
        front = ("front", first, use)
        rate, cpu = _run([front], seconds)[0]
        together, behind = _run([front, ("behind", first, 1.0)], seconds)
        if not alone_single or not rate:
            raise NotMeasured(
                "the machine is busy: a process alone on one of its processors got nothing done"
            )
        idle = max(1.0 - cpu, 1e-3)
        harvest = float("nan")
        if alone_several:
            fronts = [("front", cpu_, use) for cpu_ in processors]
            rates = _run([*fronts, *several], seconds)[len(fronts) :]
            harvest = min(rate for rate, _ in rates) / alone_several / idle
        found.append(TwoTiers(cpu, 1.0 - together[0] / rate, behind[0] / alone_single / idle, harvest))
    return found


def _run(processes: Sequence[tuple[str, int, float]], seconds: float) -> list[tuple[float, float]]:
    """Pieces a second and CPU use of each of these processes, which run together."""
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
        found = []
        for process in started:
            # One that waits at the barrier is let go when its neighbour has ended.
            out, _ = process.communicate(timeout=120.0 + seconds)
            if process.returncode:
                raise NotMeasured(f"a process ended with {process.returncode}")
            rate, cpu_use = out.split()
            found.append((float(rate), float(cpu_use)))
        return found
    except subprocess.TimeoutExpired as error:
        raise NotMeasured("the processes did not come to an end") from error
    finally:
        for end in pipes:
            os.close(end)
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
