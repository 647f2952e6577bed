"""Who is limited in jobs and processors alone: one comparison says what the limits say one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.limits.rules import Amounts
from headway_plugins.limits.use import Holder

SMALL = st.integers(0, 6)


def a_job(name: str, processors: int) -> Any:
    return SimpleNamespace(id=name, processors=processors, start_time=None)


@given(
    jobs=st.none() | SMALL, processors=st.none() | SMALL, running=st.lists(st.integers(1, 4), max_size=5),
    wanted=st.integers(1, 8),
)  # fmt: skip
def test_the_room_is_what_the_limits_leave(
    jobs: int | None, processors: int | None, running: list[int], wanted: int
) -> None:
    holder = Holder((0, ("ann",)), "user 'ann'", Amounts(jobs=jobs, processors=processors))
    there = [(one := a_job(str(n), size), holder.add(one, 0.0)) for n, size in enumerate(running)]
    assert holder.plain
    for at in range(len(there) + 1):
        has = running[at:]
        over = ""
        if processors is not None and sum(has) + wanted > processors:
            over = "processors"
        if jobs is not None and len(has) + 1 > jobs:
            over = "jobs"
        job = a_job("new", wanted)
        assert holder.over(job, 0.0) == over
        assert holder.has_room(0.0)(job) == (not over)
        assert (job.processors <= holder.room) == (not over)
        never = (jobs is not None and jobs < 1) or (processors is not None and wanted > processors)
        assert bool(holder.too_large(job)) == never
        if at < len(there):
            one, added = there[at]
            holder.take_off(one, added, 0.0)
