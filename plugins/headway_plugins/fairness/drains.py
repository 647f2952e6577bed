"""All fair start times of a run in one pass: the run goes on, and at each arrival a copy of it is drained.

Between two arrivals the real schedule is the schedule without arrivals after the first of them. So when job j
arrives, a copy of the state, with j and without any job after it, is run until its queue is empty. j's start
in it is its strict fair start. What still runs when the last job has started tells when the next arrival
would start behind all jobs, its relaxed fair start.

The schedulers are the plugins ``strict`` (``fcfs``), ``greedy``, ``easy`` and ``conservative``
(bookings made anew each time, or guarantees that are kept) on a flat pool, under the orders of submission,
``shortest-first`` and ``largest-xfactor``. The caller of :func:`run_with_drains` compares the starts with
the starts of the run in question.

The state is a few arrays. ``queue[:count]`` are waiting jobs in service order; ``busy[:runs]`` running jobs
in order of their expected ends, which are ``due[:runs]``; ``held[job]`` is the guarantee of a waiting job
(infinity: nothing yet). ``tally`` is (count, runs, free processors, whether a job ended since the last
cycle). One instant is: completions, arrivals, one cycle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway_plugins.fairness.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The schedulers.
STRICT, GREEDY, EASY, REBUILT, KEPT = 0, 1, 2, 3, 4
#: The orders of service.
SUBMISSION, SHORTEST, XFACTOR = 0, 1, 2

#: An end that is overdue is expected this much later than now, as in
#: :func:`headway.resources.profile.next_after`.
_NEXT = 1e-3
_COUNT, _RUNS, _FREE, _ENDED = 0, 1, 2, 3


@compiled
def _later(one, other, order, now, submit, estimate):  # type: ignore[no-untyped-def]
    """Whether ``one`` is served after ``other``; ties by submission."""
    if order == 1:
        if estimate[one] != estimate[other]:
            return estimate[one] > estimate[other]
    elif order == 2:
        a, b = estimate[one], estimate[other]
        first = (now - submit[one] + a) / a if a > 0 else np.inf
        second = (now - submit[other] + b) / b if b > 0 else np.inf
        if first != second:
            return first < second
    return one > other


@compiled
def _sort(queue, count, order, now, submit, estimate):  # type: ignore[no-untyped-def]
    """The queue in the order of this moment; nearly sorted already, so by insertion."""
    for at in range(1, count):
        job = queue[at]
        back = at - 1
        while back >= 0 and _later(queue[back], job, order, now, submit, estimate):
            queue[back + 1] = queue[back]
            back -= 1
        queue[back + 1] = job


@compiled
def _arrive(job, queue, tally, order, now, submit, estimate):  # type: ignore[no-untyped-def]
    at = tally[_COUNT]
    if order == 1:
        while at > 0 and _later(queue[at - 1], job, order, now, submit, estimate):
            queue[at] = queue[at - 1]
            at -= 1
    queue[at] = job
    tally[_COUNT] += 1


@compiled
def _begin(job, now, start, busy, due, tally, size, estimate):  # type: ignore[no-untyped-def]
    """The job starts; the caller takes it out of the queue."""
    start[job] = now
    tally[_FREE] -= size[job]
    end = now + estimate[job]
    at = tally[_RUNS]
    while at > 0 and due[at - 1] > end:
        due[at] = due[at - 1]
        busy[at] = busy[at - 1]
        at -= 1
    due[at] = end
    busy[at] = job
    tally[_RUNS] += 1


@compiled
def _next_end(busy, tally, start, runtime):  # type: ignore[no-untyped-def]
    """When the next running job ends; infinity: none runs."""
    soonest = np.inf
    for at in range(tally[_RUNS]):
        end = start[busy[at]] + runtime[busy[at]]
        if end < soonest:
            soonest = end
    return soonest


@compiled
def _complete(now, busy, due, tally, start, size, runtime):  # type: ignore[no-untyped-def]
    """A job that has ended by now leaves."""
    kept = 0
    for at in range(tally[_RUNS]):
        job = busy[at]
        if start[job] + runtime[job] <= now:
            tally[_FREE] += size[job]
            tally[_ENDED] = 1
        else:
            busy[kept] = job
            due[kept] = due[at]
            kept += 1
    tally[_RUNS] = kept


@compiled
def _cut(times, levels, steps, time):  # type: ignore[no-untyped-def]
    """The step of a profile that begins at ``time``, made if there is none; and how many steps there are."""
    if time <= times[0]:
        return 0, steps
    low, high = 0, steps
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < steps and times[low] == time:
        return low, steps
    for at in range(steps, low, -1):
        times[at] = times[at - 1]
        levels[at] = levels[at - 1]
    times[low] = time
    levels[low] = levels[low - 1]
    return low, steps + 1


@compiled
def _reserve(times, levels, steps, start, end, processors):  # type: ignore[no-untyped-def]
    if end <= start:
        return steps
    first, steps = _cut(times, levels, steps, start)
    last, steps = _cut(times, levels, steps, end)
    for at in range(first, last):
        levels[at] -= processors
    return steps


@compiled
def _earliest(times, levels, steps, processors, duration):  # type: ignore[no-untyped-def]
    """The first time at which so many processors are free for ``duration`` seconds; infinity: never."""
    step = 0
    while True:
        while step < steps and levels[step] < processors:
            step += 1
        if step == steps:
            return np.inf
        start = times[step]
        end = start + duration
        probe = step + 1
        while probe < steps and times[probe] < end and levels[probe] >= processors:
            probe += 1
        if probe == steps or times[probe] >= end:
            return start
        step = probe


@compiled
def _profile(now, busy, due, tally, size, times, levels):  # type: ignore[no-untyped-def]
    """What is free by the expected ends of the running jobs; how many steps it has."""
    times[0] = now
    level = tally[_FREE]
    levels[0] = level
    steps = 1
    for at in range(tally[_RUNS]):
        time = due[at] if due[at] > now else now + _NEXT
        if time < times[steps - 1]:
            time = times[steps - 1]
        level += size[busy[at]]
        if steps > 1 and time == times[steps - 1]:
            levels[steps - 1] = level
        else:
            times[steps] = time
            levels[steps] = level
            steps += 1
    return steps


@compiled
def _sweep(queue, tally, start):  # type: ignore[no-untyped-def]
    """Take started jobs out of the queue."""
    kept = 0
    for at in range(tally[_COUNT]):
        if start[queue[at]] == np.inf:
            queue[kept] = queue[at]
            kept += 1
    tally[_COUNT] = kept


@compiled
def _easy(now, queue, busy, due, tally, start, size, estimate):  # type: ignore[no-untyped-def]
    count = tally[_COUNT]
    first = 0
    while first < count and size[queue[first]] <= tally[_FREE]:
        _begin(queue[first], now, start, busy, due, tally, size, estimate)
        first += 1
    if first < count and tally[_FREE] > 0:
        need = size[queue[first]] - tally[_FREE]
        shadow = np.inf
        at, runs = 0, tally[_RUNS]
        while at < runs:
            need -= size[busy[at]]
            if need <= 0:
                shadow = due[at] if due[at] > now else now + _NEXT
                at += 1
                break
            at += 1
        while at < runs and due[at] <= shadow:
            need -= size[busy[at]]
            at += 1
        extra = -need
        for at in range(first + 1, count):
            job = queue[at]
            if size[job] <= tally[_FREE] and (now + estimate[job] <= shadow or size[job] <= extra):
                if now + estimate[job] > shadow:
                    extra -= size[job]
                _begin(job, now, start, busy, due, tally, size, estimate)
                if tally[_FREE] == 0:
                    break


@compiled
def _rebuilt(now, queue, busy, due, tally, start, size, estimate, times, levels, smallest):  # type: ignore[no-untyped-def]
    """Conservative backfilling, jobs booked anew in queue order until no job behind could start."""
    count = tally[_COUNT]
    smallest[count] = np.iinfo(np.int64).max
    for at in range(count - 1, -1, -1):
        smallest[at] = min(smallest[at + 1], size[queue[at]])
    if smallest[0] > tally[_FREE]:
        return
    steps = _profile(now, busy, due, tally, size, times, levels)
    for at in range(count):
        if smallest[at] > tally[_FREE]:
            break
        job = queue[at]
        begin = _earliest(times, levels, steps, size[job], estimate[job])
        steps = _reserve(times, levels, steps, begin, begin + estimate[job], size[job])
        if begin == now:
            _begin(job, now, start, busy, due, tally, size, estimate)


@compiled
def _kept(now, queue, busy, due, tally, start, size, estimate, held, times, levels, smallest):  # type: ignore[no-untyped-def]
    """Conservative backfilling with guarantees: after an end each job in queue order may move to an earlier
    time; an arrival is booked in the first hole."""
    count = tally[_COUNT]
    steps = _profile(now, busy, due, tally, size, times, levels)
    for at in range(count):
        job = queue[at]
        if held[job] < np.inf:
            steps = _reserve(times, levels, steps, held[job], held[job] + estimate[job], size[job])
    for at in range(count):
        job = queue[at]
        if held[job] < np.inf:
            if not tally[_ENDED] and held[job] > now:
                continue
            steps = _reserve(times, levels, steps, held[job], held[job] + estimate[job], -size[job])
        begin = _earliest(times, levels, steps, size[job], estimate[job])
        held[job] = begin
        steps = _reserve(times, levels, steps, begin, begin + estimate[job], size[job])
        if begin == now:
            _begin(job, now, start, busy, due, tally, size, estimate)


@compiled
def _cycle(
    policy, order, now, queue, busy, due, tally, start, held, submit, size, estimate, times, levels, smallest
):  # type: ignore[no-untyped-def]
    """The policy is asked."""
    if order == 2:
        _sort(queue, tally[_COUNT], order, now, submit, estimate)
    if policy == 4:
        _kept(now, queue, busy, due, tally, start, size, estimate, held, times, levels, smallest)
    elif tally[_FREE] > 0:
        if policy == 2:
            _easy(now, queue, busy, due, tally, start, size, estimate)
        elif policy == 3:
            _rebuilt(now, queue, busy, due, tally, start, size, estimate, times, levels, smallest)
        else:
            for at in range(tally[_COUNT]):
                if size[queue[at]] <= tally[_FREE]:
                    _begin(queue[at], now, start, busy, due, tally, size, estimate)
                elif policy == 0:
                    break
    tally[_ENDED] = 0
    _sweep(queue, tally, start)


@compiled
def _moment(policy, queue, busy, tally, start, held, runtime):  # type: ignore[no-untyped-def]
    """When something happens next if no job arrives."""
    soonest = _next_end(busy, tally, start, runtime)
    if policy == 4:
        for at in range(tally[_COUNT]):
            if held[queue[at]] < soonest:
                soonest = held[queue[at]]
    return soonest


@compiled
def _copied(queue, busy, due, tally, start, held, queue_, busy_, due_, tally_, start_, held_):  # type: ignore[no-untyped-def]
    """Bring the copy to where the run is: its queue, what runs, and these jobs' starts and guarantees."""
    tally_[:] = tally
    for at in range(tally[_COUNT]):
        queue_[at] = queue[at]
        start_[queue[at]] = np.inf
        held_[queue[at]] = held[queue[at]]
    for at in range(tally[_RUNS]):
        busy_[at] = busy[at]
        due_[at] = due[at]
        start_[busy[at]] = start[busy[at]]


@compiled
def run_with_drains(processors, submit, size, runtime, estimate, policy, order, relaxed_too):  # type: ignore[no-untyped-def]
    """Start, strict and relaxed fair start of each job, absolute seconds: three arrays of the jobs' length.

    ``submit``, ``runtime`` and ``estimate`` are seconds (float64), ``size`` processors (int64, at most
    ``processors``), jobs in order of submission, runtimes cut at the estimates. Without ``relaxed_too``
    drains end with the start of their job, and the relaxed fair starts are NaN.
    """
    count = len(submit)
    start, strict = np.full(count, np.inf), np.full(count, np.nan)
    relaxed, held = np.full(count, np.nan), np.full(count, np.inf)
    queue, busy, due = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64), np.empty(count + 1)
    tally = np.zeros(4, np.int64)
    tally[_FREE] = processors
    # Of the copy; a job's start and guarantee in it are as in the run until it says otherwise.
    queue_, busy_, due_ = queue.copy(), busy.copy(), due.copy()
    start_, held_, tally_ = start.copy(), held.copy(), tally.copy()
    times, levels = np.empty(4 * count + 8), np.empty(4 * count + 8, np.int64)
    smallest = np.empty(count + 1, np.int64)
    fixed = submit, size, estimate, times, levels, smallest
    if relaxed_too and count:
        relaxed[0] = submit[0]
    for job in range(count):
        now = submit[job]
        if not (job and submit[job - 1] == now):
            while True:
                time = _moment(policy, queue, busy, tally, start, held, runtime)
                if time >= now:
                    break
                _complete(time, busy, due, tally, start, size, runtime)
                _cycle(policy, order, time, queue, busy, due, tally, start, held, *fixed)
            _complete(now, busy, due, tally, start, size, runtime)
        _arrive(job, queue, tally, order, now, submit, estimate)
        # The drain.
        _copied(queue, busy, due, tally, start, held, queue_, busy_, due_, tally_, start_, held_)
        time = now
        while True:
            _cycle(policy, order, time, queue_, busy_, due_, tally_, start_, held_, *fixed)
            if tally_[_COUNT] == 0 or (not relaxed_too and start_[job] < np.inf):
                break
            time = _moment(policy, queue_, busy_, tally_, start_, held_, runtime)
            _complete(time, busy_, due_, tally_, start_, size, runtime)
        strict[job] = start_[job]
        if relaxed_too and job + 1 < count:
            # All earlier jobs have started: the next job begins as soon as it fits.
            time = max(submit[job + 1], time)
            _complete(time, busy_, due_, tally_, start_, size, runtime)
            while tally_[_FREE] < size[job + 1]:
                time = _next_end(busy_, tally_, start_, runtime)
                _complete(time, busy_, due_, tally_, start_, size, runtime)
            relaxed[job + 1] = time
        if not (job + 1 < count and submit[job + 1] == now):
            _cycle(policy, order, now, queue, busy, due, tally, start, held, *fixed)
    while tally[_COUNT]:
        time = _moment(policy, queue, busy, tally, start, held, runtime)
        _complete(time, busy, due, tally, start, size, runtime)
        _cycle(policy, order, time, queue, busy, due, tally, start, held, *fixed)
    return start, strict, relaxed
