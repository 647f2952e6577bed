"""A job that stands still for a moment, step by step."""

from __future__ import annotations

import pytest
from building import described
from migration_words import names

from headway.adapter.migration import Answered, Move, Passed, Seen, Stimulus
from headway_plugins.migration.pause import Pause, Times

NODES = (("n1", 2),)
MOVE = Move(described("7", 2), NODES, NODES, restarts=0)
RUNS, STANDS, WAITS, ENDED = (Seen(state, NODES) for state in ("running", "suspended", "pending", "ended"))
YES, NO = Answered(True), Answered(False, "no")
LATE = 1e6

TABLE: dict[str, tuple[list[Stimulus | float], list[str]]] = {
    "as it should": ([YES, RUNS, STANDS, YES, STANDS, RUNS], ["suspend", "resume", "over moved"]),
    "suspend is refused": ([NO, RUNS], ["suspend", "over stayed"]),
    "suspend was refused and happened": ([NO, STANDS, YES, RUNS], ["suspend", "resume", "over moved"]),
    "it never stands still": ([YES, RUNS, 61.0, RUNS], ["suspend", "over stayed"]),
    "it ends": ([YES, ENDED], ["suspend", "over ended"]),
    "it ends while it stands": ([YES, STANDS, YES, ENDED], ["suspend", "resume", "over ended"]),
    "somebody requeues it": ([YES, STANDS, WAITS], ["suspend", "resume", "over queued"]),
    "resume is refused at first": (
        [YES, STANDS, NO, STANDS, 66.0, YES, RUNS], ["suspend", "resume", "resume", "over moved"],
    ),
    "it cannot be resumed: it goes back to its queue": (
        [YES, STANDS, NO, LATE, YES, WAITS], ["suspend", "resume", "requeue", "over queued"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_what_is_asked_for(case: str) -> None:
    stimuli, expected = TABLE[case]
    machine = Pause(MOVE, Times(stop=60.0, resume=300.0, again=5.0))
    found, now = list(machine.begin(0.0)), 0.0
    for stimulus in stimuli:
        if isinstance(stimulus, float):
            now, stimulus = stimulus, Passed()
        found += machine.tell(now, stimulus)
    assert names(found) == expected
