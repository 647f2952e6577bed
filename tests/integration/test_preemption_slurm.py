"""Preemption on a real Slurm: who is in the way goes back to the queue, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

from headway.decisions import Requeue
from headway.events import JobRequeued

pytestmark = pytest.mark.slurm

RULES = {"rules": [{"who": {"account": ["urgent"]}, "whom": {"account": ["spare"]}}]}


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 2 CPUs."""
    daemon = Daemon(
        slurm_factory(nodes=2, cpus=2), tmp_path, plugins=["easy", "first-fit", {"preemption": RULES}]
    )
    yield daemon
    daemon.clean_up()


def spare(site: Daemon, diary: Diary, **options: bool) -> str:
    """A job of one node that runs until the file ``over`` is there."""
    over = diary.path.with_name("over")
    script = diary.script(f"0; while ! [ -e {over} ]; do sleep 0.1; done")
    return site.cluster.submit(2, nodes=1, script=script, account="spare", **options)


def let_go_on(site: Daemon, diary: Diary, jobs: list[str]) -> None:
    """The spare jobs may end, and start again at once: Slurm lets who was requeued wait for two minutes."""
    diary.path.with_name("over").touch()
    for job in jobs:
        if diary.ended()[job] == 0:
            site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)


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
    let_go_on(site, diary, low[:1])
    site.until(lambda: diary.ended() == {job: 1 for job in (*low, other, high)}, what="all have run")
    assert diary.begun() == {low[0]: 2, low[1]: 1, other: 1, high: 1}
    assert site.said("a plugin failed") == []
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
    let_go_on(site, diary, low)
    site.until(lambda: diary.ended() == {job: 1 for job in (*low, high)}, what="all have run")
    assert {event.job_id for event in site.events(JobRequeued)} <= set(low)
    assert site.stop() == 0
    site.assert_replays()
