"""Two daemons for one Slurm: one leads, the other takes over, and every job starts once."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import schema_of
from standby_pair import PATIENCE, TAKE_OVER, Pair, after, led_since, pair
from waiting import HANG, until

pytestmark = pytest.mark.slurm


@pytest.fixture(params=["shared", "followed"])
def two(request: pytest.FixtureRequest, slurm_cluster: Any, tmp_path: Path) -> Iterator[Pair]:
    if request.param == "followed":
        with pair(slurm_cluster, tmp_path, None) as made:
            yield made
        return
    with schema_of(request.getfixturevalue("postgres")) as url, pair(slurm_cluster, tmp_path, url) as made:
        yield made


def both_up(two: Pair) -> None:
    """The first leads and has started a job, the second stands by; more jobs run and wait."""
    first, second = two.daemons
    two.start(first)
    two.leads(first)
    two.start(second)
    two.begins(two.submit())
    for _ in range(4):
        two.submit(2, 2.0)


def goes_on(two: Pair, moment: float, seconds: float = TAKE_OVER) -> None:
    """The second took over since ``moment``, and jobs that come now start."""
    two.leads(two.daemons[1])
    took = led_since(two.daemons[1], moment)
    print(f"take-over in {took:.2f} s")
    assert took < seconds
    two.begins(two.submit())


def test_the_stand_by_takes_over_from_a_leader_that_was_killed(two: Pair) -> None:
    both_up(two)
    goes_on(two, after(two.daemons[0].kill))
    two.finish()


def test_a_leader_that_ends_in_good_order_hands_over_at_once(two: Pair) -> None:
    both_up(two)
    assert two.daemons[0].stop() == 0
    goes_on(two, after(lambda: None), PATIENCE)
    two.finish()


def test_a_leader_that_was_stopped_ends_when_it_goes_on(two: Pair) -> None:
    both_up(two)
    first = two.daemons[0]
    goes_on(two, after(lambda: first.send(signal.SIGSTOP)))
    first.send(signal.SIGCONT)
    assert first.ended(HANG) == 1
    two.finish()
    assert two.daemons[1].process is not None and two.daemons[1].process.poll() is None


def test_the_stand_by_tells_how_it_is(two: Pair) -> None:
    both_up(two)
    first, second = two.daemons

    def told() -> dict[str, Any]:
        known: dict[str, Any] = json.loads(second.command("status", "--json").stdout)["leadership"]
        return known

    until(lambda: told()["leader"], "the leader is known", said=two.said)
    known = told()
    assert known["role"] == "stand-by" and str(first.process.pid) in known["leader"]
    assert known["lag"] < PATIENCE and known["silent"] < PATIENCE
    leading = json.loads(first.command("status", "--json").stdout)["leadership"]
    assert leading["role"] == "leader" and leading["epoch"] >= known["epoch"] > 0
    assert "stand-by" in second.command("jobs").stderr
    assert "leads with epoch" in second.command("status").stdout
    two.finish()
