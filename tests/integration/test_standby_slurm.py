"""Two daemons for one Slurm: one leads, the other takes over, and every job starts once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import schema_of
from postgres_server import PostgresServer, programs
from standby_pair import PATIENCE, TAKE_OVER, Pair, after, leadership, led_since, over_ssh, pair
from waiting import HANG, limit, until

from headway_adapters.polling.heartbeat import read_word

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
    two.follows(second)
    two.begins(two.submit())
    for _ in range(4):
        two.submit(2, 2.0)


def goes_on(two: Pair, moment: float, seconds: float = TAKE_OVER) -> None:
    """The second took over since ``moment``, and jobs that come now start."""
    two.leads(two.daemons[1])
    took = led_since(two.daemons[1], moment)
    print(f"take-over in {took:.2f} s")
    assert took < limit(seconds)
    two.begins(two.submit())


def test_the_stand_by_takes_over_from_a_leader_that_was_killed(two: Pair) -> None:
    both_up(two)
    goes_on(two, after(two.daemons[0].kill))
    two.finish()


def test_a_leader_that_ends_in_good_order_hands_over_at_once_and_gets_it_back(two: Pair) -> None:
    both_up(two)
    first, second = two.daemons
    assert first.stop() == 0
    goes_on(two, after(lambda: None), PATIENCE)
    two.start(first)
    two.follows(first)
    assert second.stop() == 0
    two.leads(first, 2)
    two.begins(two.submit())
    two.finish()
    # What the first knows includes what the second did.
    assert {start.job_id for _, start in first.starts()} >= set(two.jobs)


def test_a_leader_that_was_stopped_ends_when_it_goes_on(two: Pair) -> None:
    both_up(two)
    first = two.daemons[0]
    goes_on(two, after(lambda: first.send(signal.SIGSTOP)))
    first.send(signal.SIGCONT)
    assert first.ended(HANG) == 1
    two.finish()
    assert two.daemons[1].process is not None and two.daemons[1].process.poll() is None


def test_a_stand_by_that_was_stopped_takes_nothing_over(two: Pair) -> None:
    both_up(two)
    second = two.daemons[1]
    second.send(signal.SIGSTOP)
    two.finish()
    stopped = after(lambda: None)
    until(lambda: after(lambda: None) > stopped + PATIENCE, "the patience is over")
    second.send(signal.SIGCONT)
    two.follows(second)
    assert not second.said("headway leads")


def test_the_stand_by_tells_how_it_is(two: Pair) -> None:
    both_up(two)
    first, second = two.daemons
    assert first.process is not None
    known = leadership(second)
    assert known["role"] == "stand-by" and str(first.process.pid) in known["leader"]
    leading = leadership(first)
    assert leading["role"] == "leader" and leading["epoch"] >= known["epoch"] > 0
    assert "ask the leader" in second.command("jobs").stderr
    assert "leads with epoch" in second.command("status").stdout
    assert "is the leader with epoch" in first.command("status").stdout
    two.finish()


def test_over_ssh_a_leader_that_was_cut_off_learns_that_it_leads_no_more(
    slurm_cluster: Any, tmp_path: Path, sshd: Any
) -> None:
    with pair(slurm_cluster, tmp_path, None, follow=over_ssh(sshd)) as two:
        both_up(two)
        moment = after(sshd.stop)
        goes_on(two, moment)
        first = two.daemons[0]
        assert first.process is not None and first.process.poll() is None
        sshd.start()
        # The new leader reaches its machine again.
        assert first.ended(HANG) == 1
        assert "leads with epoch" in first.said("headway does not lead any more")[0]["why"]
        two.begins(two.submit())
        two.finish()


def test_the_heartbeat_goes_on_through_a_take_over(slurm_cluster: Any, tmp_path: Path, postgres: str) -> None:
    heartbeat = tmp_path / "heartbeat"
    options = {"heartbeat": str(heartbeat), "patience": 60}
    with schema_of(postgres) as url, pair(slurm_cluster, tmp_path, url, options=options) as two:
        both_up(two)
        until(heartbeat.exists, "the heartbeat", said=two.said)
        before = read_word(heartbeat.read_text())
        two.daemons[0].kill()
        two.leads(two.daemons[1])

        def goes_on() -> bool:
            word = read_word(heartbeat.read_text())
            assert word is not None and word.drives and before is not None
            return word.at > before.at + PATIENCE

        until(goes_on, "the new leader says that it drives", said=two.said)
        two.finish()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be ended and started."""
    pytest.importorskip("psycopg")
    installed = programs()
    if installed is None:
        pytest.skip("PostgreSQL's server is not installed")
    made = PostgresServer(installed)
    yield made
    made.stop()


@pytest.mark.parametrize("phase", ["leading", "taking over", "away"])
def test_a_database_that_goes_away_costs_no_job(
    slurm_cluster: Any, tmp_path: Path, server: PostgresServer, phase: str
) -> None:
    """As systemd does: a daemon that ends is started again."""
    with pair(slurm_cluster, tmp_path, server.url) as two:
        both_up(two)
        first, second = two.daemons
        if phase == "taking over":
            first.kill()
        server.down()
        if phase == "away":
            # Long enough that each of them misses it.
            until(lambda: first.process is None or first.process.poll() is not None, "the leader ends")
            two.submit()
        server.up()

        def one_leads() -> bool:
            for daemon in two.daemons:
                if daemon.process is None or daemon.process.poll() is not None:
                    daemon.process = None
                    two.start(daemon)
            return all(two.diary.begun()[job] for job in two.jobs)

        two.submit()
        until(one_leads, "jobs start again", 3 * HANG, said=two.said)
        two.finish()
        if phase == "taking over":
            assert second.said("headway leads")
