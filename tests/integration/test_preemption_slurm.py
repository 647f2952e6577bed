"""Preemption on a real Slurm: who is in the way goes back to the queue, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway.decisions import Requeue, Signal
from headway.events import JobRequeued

pytestmark = pytest.mark.slurm

RULES = {"rules": [{"who": {"account": ["urgent"]}, "whom": {"account": ["spare"]}}]}


@pytest.fixture
def grace() -> dict[str, object]:
    return {}


@pytest.fixture
def site(
    slurm_factory: Callable[..., Any], tmp_path: Path, grace: dict[str, object]
) -> Iterator[Daemon]:  # fmt: skip
    """2 nodes of 2 CPUs."""
    rules = {"rules": [{**RULES["rules"][0], **grace}]}
    daemon = Daemon(
        slurm_factory(nodes=2, cpus=2), tmp_path, plugins=["easy", "first-fit", {"preemption": rules}]
    )
    yield daemon
    daemon.clean_up()


def spare(site: Daemon, diary: Diary, **options: bool) -> str:
    """A job of one node that runs until the file ``over`` is there."""
    over = diary.path.with_name("over")
    script = diary.script(f"0; while ! [ -e {over} ]; do sleep 0.1; done")
    return site.cluster.submit(2, nodes=1, script=script, account="spare", **options)


def let_all_run(site: Daemon, diary: Diary, low: list[str], wanted: dict[str, int]) -> None:
    """The spare jobs may end, and start again at once: Slurm lets who was requeued wait for two minutes, from
    when its requeue is done."""
    diary.path.with_name("over").touch()

    def over() -> bool:
        if diary.ended() == wanted:
            return True
        for job in low:
            if diary.ended()[job] == 0:
                site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
        return False

    site.until(over, what="all have run")


def test_a_job_has_the_place_of_others_which_run_later(site: Daemon) -> None:
    diary = Diary(site.cluster)
    site.start()
    low = [spare(site, diary), spare(site, diary, no_requeue=True)]
    site.until(lambda: set(diary.begun()) == set(low), what="the spare jobs run")
    other = site.cluster.submit(2, nodes=1, script=diary.script(0), account="other")
    high = site.cluster.submit(2, nodes=1, script=diary.script(1), account="urgent")
    site.until(lambda: diary.ended()[high] == 1, what="the urgent job has run")
    requeues = [decision for _, decision in site.decisions() if isinstance(decision, Requeue)]
    assert [requeue.job_id for requeue in requeues] == [low[1], low[0]], (
        "who came last; it stays, so the other"
    )
    assert f"makes room for job {high} (account urgent before account spare)" in requeues[0].reason
    let_all_run(site, diary, low[:1], {job: 1 for job in (*low, other, high)})
    assert diary.begun() == {low[0]: 2, low[1]: 1, other: 1, high: 1}
    assert site.said("a plugin failed") == []
    assert site.stop() == 0
    site.assert_replays()


@pytest.mark.parametrize("grace", [{"grace": 4, "signal": "USR1"}], ids=["4 s"])
def test_who_has_a_grace_time_is_signalled_and_goes_when_it_is_over(site: Daemon) -> None:
    """One ends on the signal, one only notes it."""
    diary = Diary(site.cluster)
    over, noted = diary.path.with_name("over"), diary.path.with_name("noted")
    site.start()
    loop = f"while ! [ -e {over} ]; do sleep 0.1; done"
    ends = site.cluster.submit(
        2, nodes=1, script=diary.script(f"0; trap 'exit 0' USR1; {loop}"), account="spare"
    )
    notes = site.cluster.submit(
        2, nodes=1, script=diary.script(f"0; trap 'date +%s > {noted}' USR1; {loop}"), account="spare"
    )
    site.until(lambda: set(diary.begun()) == {ends, notes}, what="the spare jobs run")
    high = site.cluster.submit(4, nodes=2, script=diary.script(1), account="urgent")
    site.until(lambda: diary.ended()[high] == 1, what="the urgent job has run")
    told = [(now, one) for now, one in site.decisions() if isinstance(one, Signal | Requeue)]
    assert sorted(one.job_id for _, one in told if isinstance(one, Signal)) == sorted([ends, notes])
    [(gone, requeue)] = [(now, one) for now, one in told if isinstance(one, Requeue)]
    assert requeue.job_id == notes and gone - told[0][0] >= 4
    assert noted.exists() and diary.begun()[ends] == 1
    over.touch()
    assert site.stop() == 0
    site.assert_replays()


def test_killed_while_room_is_made(site: Daemon) -> None:
    """The next daemon finds the truth in Slurm: the urgent job is first, and all run once to the end."""
    diary = Diary(site.cluster)
    site.start()
    low = [spare(site, diary), spare(site, diary)]
    site.until(lambda: set(diary.begun()) == set(low), what="the spare jobs run")
    high = site.cluster.submit(4, nodes=2, script=diary.script(1), account="urgent")
    site.until(
        lambda: any(isinstance(decision, Requeue) for _, decision in site.decisions()), what="room is made"
    )
    site.kill()
    site.start()
    site.until(lambda: diary.ended()[high] == 1, what="the urgent job has run")
    assert diary.ended() == {high: 1}, "before who was in its way"
    let_all_run(site, diary, low, {job: 1 for job in (*low, high)})
    assert {event.job_id for event in site.events(JobRequeued)} <= set(low)
    assert site.stop() == 0
    site.assert_replays()


def test_who_is_slow_to_go_is_told_to_once_and_nobody_goes_in_the_meantime(site: Daemon) -> None:
    """A victim ignores the signal, so that Slurm shows it on its node, requeued already, for seconds."""
    diary = Diary(site.cluster)
    over = diary.path.with_name("over")
    stubborn = diary.script(f"0; trap '' TERM; while ! [ -e {over} ]; do sleep 0.1; done")
    site.start()
    low = [site.cluster.submit(2, nodes=1, script=stubborn, account="spare") for _ in range(2)]
    site.until(lambda: set(diary.begun()) == set(low), what="the spare jobs run")
    high = site.cluster.submit(2, nodes=1, script=diary.script(1), account="urgent")
    site.until(lambda: diary.ended()[high] == 1, what="the urgent job has run")
    assert len([decision for _, decision in site.decisions() if isinstance(decision, Requeue)]) == 1
    assert len({event.job_id for event in site.events(JobRequeued)}) == len(site.events(JobRequeued)) == 1
    assert site.said("a job started that headway did not start") == []
    over.touch()
    assert site.stop() == 0
    site.assert_replays()
