"""The PBS adapter on a real OpenPBS of three hosts: what no recording can show.

All tests share one server, and each leaves it as it was: its jobs gone, its vnodes free. What must hold on
each batch system is in ``test_on_pbs.py``.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from real_systems import Pbs
from waiting import HANG

from headway import decisions as d
from headway import events as ev
from headway_adapters.pbs import PbsAdapter

pytestmark = [pytest.mark.pbs, pytest.mark.long]

#: Times of commands are in it.
UTC = {"TZ": "UTC"}


@pytest.fixture
def site(pbs_server: BatchServer) -> Iterator[Pbs]:
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(pbs_server, Path(directory))
        yield one
        one.close()


def adapter(site: Pbs) -> PbsAdapter:
    """An adapter outside, whose commands run inside."""
    return PbsAdapter(site.options(bin_dir=str(site.server.root / "bin")))


def until(one: PbsAdapter, told: Callable[[ev.Event], bool], what: str) -> Any:
    """The first event that is meant."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        moment = one.wait(time.time() + 1.0)
        assert moment is not None
        for event in moment[1]:
            if told(event):
                return event
    raise AssertionError(f"not within {HANG} s: {what}")


def test_a_host_is_put_offline_and_back(site: Pbs) -> None:
    with adapter(site) as one:
        one.describe()
        for argv, state, comment in (
            (one.drain("pbsb", "asleep: saves power"), "offline", "asleep: saves power"),
            (one.undrain("pbsb"), "free", ""),
        ):
            site.server.run(*argv)
            shown = site.server.run("pbsnodes", "pbsb")
            assert re.search(r"state = (\S+)", shown)[1] == state  # type: ignore[index]
            assert (re.findall(r"comment = (.*)", shown) or [""])[0].strip() == comment


def test_a_running_job_gives_whole_hosts_back_and_no_part_of_one(site: Pbs) -> None:
    job = site.qsub("3:ncpus=4", "-l", "place=scatter", "-v", "HEADWAY=malleable", seconds=600)
    with adapter(site) as one:
        one.describe()
        until(one, lambda event: isinstance(event, ev.JobSubmitted) and event.job.id == job, "it is there")
        has = (("pbsa", 4), ("pbsb", 4), ("pbsc", 4))
        assert one.apply(time.time(), [d.Start(job, has)])[0].accepted
        until(one, lambda event: isinstance(event, ev.JobStarted), "it runs")
        part = one.apply(time.time(), [d.Resize(job, 10, (("pbsa", 4), ("pbsb", 4), ("pbsc", 2)))])[0]
        assert not part.accepted
        assert "whole vnodes" in part.message
        end = time.monotonic() + HANG
        while not (outcome := one.apply(time.time(), [d.Resize(job, 8, has[:2])])[0]).accepted:
            # Its hosts are still being told of it.
            assert "Request invalid for state" in outcome.message and time.monotonic() < end
            time.sleep(0.5)
        moved = until(one, lambda event: isinstance(event, ev.JobMigrated), "the listing shows it")
        assert (moved.job_id, moved.placement) == (job, has[:2])


def test_jobs_in_the_queue_of_a_reservation_are_load(site: Pbs) -> None:
    server = site.server
    daemon = site.daemon(options={"reservations": True})
    with site.own_scheduler("workq"):
        daemon.start()
        begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(time.time() + 8))
        shape = ("-l", "select=1:ncpus=4")
        said = server.call("pbs_rsub", "-R", begin, "-D", "1:00:00", *shape, user="alice", environment=UTC)
        reserved = said.stdout.split()[0]
        queue = reserved.partition(".")[0]
        server.until(lambda: f"queue = {queue}" in server.run("pbs_rstat", "-f", reserved), "it is confirmed")
        inside = site.qsub("1:ncpus=2", "-q", queue, seconds=600, minutes=30)
        daemon.until(
            lambda: inside in {one.job_id for one in daemon.events(ev.JobStarted)},
            what="the job that PBS started in the reservation is known",
        )
        assert queue in {one.pool.name for one in daemon.events(ev.PoolChanged)}
        whole = site.submit(site.whole, nodes=site.nodes)
        beside = site.submit(8, seconds=1)
        daemon.until(
            lambda: beside in {one.job_id for one in daemon.events(ev.JobEnded)}, what="others run beside it"
        )
        assert site.waits(whole)
        assert daemon.stop() == 0
        assert not daemon.events(ev.DecisionFailed)
        daemon.assert_replays()


#: What OpenPBS's own scheduler starts at once on three idle hosts of 8 processors and 4 GB.
STARTED_AT_ONCE = (
    ("1:ncpus=8+4:ncpus=1", "free"),
    ("1:ncpus=1:mem=3gb+7:ncpus=2:mem=100mb", "free"),
    ("3:ncpus=6", "free"),
    ("1:ncpus=0", "free"),
    ("3:ncpus=8+1:ncpus=0", "free"),
    ("2:ncpus=0:mem=1gb+1:ncpus=4", "free"),
    ("2:ncpus=4:host=pbsc+4:ncpus=4", "free"),
    ("1:ncpus=2:vnode=pbsb+1:ncpus=2:host=pbsa", "free"),
    ("2:ncpus=2+1:ncpus=8", "scatter"),
    ("1:ncpus=4+4:ncpus=1", "pack"),
    ("1:ncpus=8+4:ncpus=1", "excl"),
    ("1:ncpus=1+1:ncpus=2", "exclhost"),
    ("1:ncpus=1+1:ncpus=2+1:ncpus=3", "vscatter"),
    ("6:ncpus=1:mem=2gb", "free"),
    ("1:ncpus=7+1:ncpus=5+1:ncpus=5+1:ncpus=3+1:ncpus=3+1:ncpus=1", "free"),
    ("1:ncpus=3+1:ncpus=5+1:ncpus=3+1:ncpus=5+1:ncpus=3+1:ncpus=5", "free"),
    ("6:ncpus=3+6:ncpus=1", "free"),
)


def test_what_pbs_starts_at_once_on_idle_hosts_headway_starts_at_once(site: Pbs) -> None:
    daemon = site.daemon()
    daemon.start()
    for select, place in STARTED_AT_ONCE:
        job = site.qsub(select, "-l", f"place={place}", seconds=600)
        daemon.until(
            lambda job=job: job in {one.job_id for one in daemon.events(ev.JobStarted)},  # type: ignore[misc]
            what=f"{select} ({place}) is started",
        )
        site.cancel(job)
        daemon.until(
            lambda job=job: job in {one.job_id for one in daemon.events(ev.JobEnded)},  # type: ignore[misc]
            what="it is over",
        )
    assert daemon.stop() == 0
    assert not daemon.events(ev.DecisionFailed)
    daemon.assert_replays()


def test_a_job_that_may_be_shrunk_ends_at_its_longest_walltime(site: Pbs) -> None:
    daemon = site.daemon()
    daemon.start()
    asked = ("-l", "select=1:ncpus=1", "-l", "min_walltime=00:00:02,max_walltime=00:00:05")
    words = ("qsub", *asked, "-o", "/dev/null", "-e", "/dev/null", str(site.script(600)))
    job = site.server.run(*words, user="alice")
    daemon.until(
        lambda: [one.outcome for one in daemon.events(ev.JobEnded) if one.job_id == job] == ["timed out"],
        what="PBS ends it at its limit",
    )
    assert daemon.stop() == 0
    daemon.assert_replays()
