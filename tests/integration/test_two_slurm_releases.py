"""A federation of a Slurm 22.05 and a Slurm 24.11: jobs go from one to the other, and metajobs need both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import started_clusters
from live_daemon import Diary
from metajob_pair import Pair, slurm
from slurm_releases import INSTALLED, SLURM24
from test_federation_slurm import Federated
from test_routes_slurm import PLUGIN, ends, submit

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

WAYS = [pytest.param((INSTALLED, SLURM24), id="to24"), pytest.param((SLURM24, INSTALLED), id="from24")]


@pytest.fixture
def both(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """A cluster of each release, in the order that the test names."""
    for release in request.param:
        release.require()
    first, second = request.param
    with started_clusters(first) as start, started_clusters(second) as start_other:
        yield [start(nodes=2, cpus=2), start_other(nodes=2, cpus=2)]


@pytest.mark.parametrize("both", WAYS, indirect=True)
def test_a_job_goes_to_the_other_release_and_runs_there_once(both: list[Any], tmp_path: Path) -> None:
    north, south = both
    daemon = Federated({"north": north, "south": south}, tmp_path)
    diary, _ = Diary(north), Diary(south)
    # Another number there.
    south.run("scancel", south.submit(1))
    job = submit(north, diary)
    try:
        daemon.start("--plugin", str(PLUGIN))
        daemon.until(lambda: diary.ended().total() == 1, 60, "the job runs")
        daemon.until(lambda: ends(daemon), 60, "its end is told")
        assert daemon.stop() == 0
        assert north.state(job) == "CANCELLED" and north.jobs()[job]["nodes"] == ""
        copy = south.jobs()["2"]
        assert copy["name"] == "a name" and f";from=north:{job}@" in copy["admin_comment"]
        assert ends(daemon) == {f"north:{job}": "completed"}
        assert not daemon.events(ev.DecisionFailed)
        daemon.assert_replays(PLUGIN)
    finally:
        daemon.clean_up()


@pytest.mark.parametrize("both", WAYS[:1], indirect=True)
def test_a_metajob_starts_at_one_moment_on_both_releases(both: list[Any], tmp_path: Path) -> None:
    clusters = dict(zip(("east", "west"), both, strict=True))
    diaries = {name: Diary(cluster) for name, cluster in clusters.items()}
    daemon = Pair(slurm(clusters["east"]), slurm(clusters["west"]), tmp_path)
    try:
        daemon.start()
        jobs = {
            name: cluster.submit(
                2, nodes=1, minutes=2, script=diaries[name].script(5), hold=False, begin="now+15"
            )
            for name, cluster in clusters.items()
        }
        daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 2, what="both are seen")
        metajob = daemon.submit(time.time(), jobs)
        daemon.reserved(metajob)
        start = min(part["start"] for part in daemon.status(metajob)["parts"])
        daemon.until(lambda: all(diary.ended() for diary in diaries.values()), 150, "both have run")
        begun = {name: diaries[name].executions()[jobs[name]].begin for name in clusters}
        print("seconds after the start:", {name: round(at - start, 2) for name, at in begun.items()})
        assert abs(begun["east"] - begun["west"]) < 2.0, (begun, start)
        daemon.until(lambda: daemon.status(metajob)["phase"] == "over", 60, "it is over")
        for cluster in clusters.values():
            assert "ReservationName=" not in cluster.scontrol("-o", "show", "reservation")
        assert daemon.stop() == 0
        daemon.assert_replays()
    finally:
        daemon.clean_up()
