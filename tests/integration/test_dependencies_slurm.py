"""Jobs that depend on others on a real Slurm: each starts once Slurm holds its dependency to be met, soon
after that, and is not sent to Slurm before.

Slurm itself looks at the dependencies of held jobs once a minute.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from waiting import bound

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]

#: Far below Slurm's minute; seconds.
SOON = 15.0


class Site:
    """A cluster under a daemon, and what became of its jobs."""

    def __init__(self, cluster: Any, directory: Path) -> None:
        self.cluster = cluster
        self.diary = Diary(cluster)
        self.daemon = Daemon(cluster, directory)

    def submit(self, seconds: float = 1, *, fails: str = "false", **more: Any) -> str:
        """A job, or with ``array`` one; ``fails``: a condition of the shell on which it ends with 1."""
        script = self.diary.script(seconds).replace("exit 0", f"if {fails}; then exit 1; fi")
        return self.cluster.submit(1, script=script, **more)

    def until_begun(self, *jobs: str) -> None:
        self.daemon.until(lambda: set(jobs) <= set(self.diary.begun()), what=f"{jobs} run")

    def began(self, job: str) -> float:
        return next(float(at) for what, one, at in self.diary.lines() if (what, one) == ("begin", job))

    def over(self, *jobs: str) -> float:
        """When the last of these ended."""
        return max(float(at) for what, one, at in self.diary.lines() if what == "end" and one in jobs)

    def sent(self) -> Counter[str]:
        """How often each job was sent to Slurm."""
        return Counter(start.job_id for _, start in self.daemon.starts())


@pytest.fixture
def site(slurm_cluster: Any, tmp_path: Path) -> Iterator[Site]:
    made = Site(slurm_cluster, tmp_path)
    made.daemon.start()
    yield made
    made.daemon.clean_up()


def elements(array: str, count: int) -> list[str]:
    return [f"{array}_{at}" for at in range(count)]


def test_what_depends_on_arrays_starts_when_they_are_over(site: Site) -> None:
    bad = site.submit(6, array="0-2", fails='[ "$SLURM_ARRAY_TASK_ID" = 1 ]')
    good = site.submit(6, array="0-2", job_name="good")
    both = elements(bad, 3) + elements(good, 3)
    waits = {
        what: site.submit(dependency=what)
        for what in (
            f"afternotok:{bad}", f"afterany:{bad}", f"afterok:{good}", f"afterok:{bad}?afterok:{good}",
            f"afterok:{good}_2,afternotok:{bad}_1",
        )
    }  # fmt: skip
    single = site.submit(array="0-2", job_name="good", dependency="singleton")
    never = [site.submit(dependency=what) for what in (f"afterok:{bad}", f"afternotok:{good}")]
    begin = [*waits.values(), *elements(single, 3)]
    site.until_begun(*begin)
    for job in begin:
        assert site.over(*both) < site.began(job) + 1.0
    late = {job: site.began(job) - site.over(*both) for job in begin}
    assert max(late.values()) < bound(SOON), late
    # What comes later has nothing to wait for, and nothing was sent to Slurm in vain.
    later = site.submit(dependency=f"afternotok:{bad}")
    site.until_begun(later)
    assert {job: site.sent()[job] for job in (*begin, later)} == dict.fromkeys((*begin, later), 1)
    assert not set(never) & set(site.sent())
    assert not site.daemon.said("a start did not happen")
    assert "never" in site.daemon.command("explain", never[0]).stdout


@pytest.mark.slow
def test_a_delay_counts_from_the_start(site: Site) -> None:
    first = site.submit(2)
    after = site.submit(dependency=f"after:{first}+1")
    site.until_begun(after)
    late = site.began(after) - site.began(first) - 60.0
    # Slurm counts whole seconds.
    assert -1.0 < late < bound(SOON)
    assert site.sent()[after] == 1 and not site.daemon.said("a start did not happen")


def test_what_depends_on_a_job_of_an_unseen_partition_waits_without_taking_processors(site: Site) -> None:
    site.cluster.scontrol("create", "PartitionName=other", "Nodes=node4", "State=UP")
    site.cluster.scontrol("update", "PartitionName=batch", "Nodes=node[1-3]")
    other = site.submit(600, partition="other", hold=False, job_name="other")
    site.cluster.until(lambda: site.cluster.state(other) == "RUNNING", what="it runs")
    single = site.submit(dependency="singleton", job_name="other")
    waits = [single, site.submit(dependency=f"afterany:{other}")]
    site.until_begun(site.submit())
    assert not set(waits) & set(site.sent())
    site.cluster.run("scancel", other)
    site.until_begun(*waits)
    assert all(site.sent()[job] == 1 for job in waits)


def test_what_slurm_knows_better_is_sent_to_it_once(
    slurm_factory: Callable[..., Any], tmp_path: Path
) -> None:
    """An element failed, and Slurm does not list it any more."""
    cluster = slurm_factory("--set", "MinJobAge=5")
    site, go = Site(cluster, tmp_path), cluster.root / "go"
    first = '[ "$SLURM_ARRAY_TASK_ID" = 0 ]'
    array = site.submit(
        f"0; {first} || while [ ! -e {go} ]; do sleep 0.2; done", fails=first, array="0-1", hold=False
    )
    cluster.until(lambda: cluster.state(f"{array}_1") == "RUNNING", what="it runs")
    cluster.until(lambda: not cluster.state(f"{array}_0"), what="the element that failed is forgotten")
    waits = site.submit(dependency=f"afterok:{array}")
    refused = "a start did not happen"
    try:
        site.daemon.start()
        site.daemon.until(lambda: site.daemon.cycles(), what="it looks")
        go.touch()
        # Slurm looks every ten seconds here, and may say so by itself before.
        site.daemon.until(lambda: "failed" in cluster.jobs()[waits]["dependency"], what="Slurm says so")
        site.daemon.until(lambda: cluster.jobs()[waits]["priority"] == 0, what="it is held again")
        site.until_begun(site.submit())
        assert site.sent()[waits] == len(site.daemon.said(refused)) <= 1
        assert all("dependency" in entry["why"] for entry in site.daemon.said(refused))
        assert "never" in site.daemon.command("explain", waits).stdout
    finally:
        site.daemon.clean_up()


def test_an_array_that_a_killed_daemon_asked_about_starts(site: Site) -> None:
    assert site.daemon.stop() == 0
    array = site.submit(array="0-2", dependency="singleton")
    begin = int(time.time()) + 600
    later = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin))
    mark = f"AdminComment=headway:asked={begin}"
    site.cluster.scontrol("update", f"JobId={array}", f"StartTime={later}", mark)
    site.cluster.scontrol("release", array)
    site.daemon.start()
    site.until_begun(*elements(array, 3))
    assert max(map(site.began, elements(array, 3))) < begin
