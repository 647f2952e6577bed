"""SAREG drives a real Slurm: jobs are promised a time and levels or refused, `headway protect` carries the
levels out in them, and what that took is learnt."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import HEADWAY, Daemon
from protected_jobs import LABEL, MARGIN, assert_protected, prepare, script, wanted

from headway.decisions import Annotate, SetTimeLimit
from headway.events import JobChanged, JobEnded, JobSubmitted
from headway_plugins.security.levels import need_of, parse_profile
from headway_plugins.security.measured import measure, profile_text
from headway_plugins.security.protection.keys import Keys, make_keys
from headway_plugins.security.protection.report import Report, read_report

pytestmark = pytest.mark.slurm


class Site:
    """A driven cluster, and jobs that turn their input around."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.profile = profile_text(measure(0.01))
        (folder / "speeds.yaml").write_text(self.profile)
        make_keys(folder / "keys")
        self.keys = Keys(folder / "keys")
        options = {"profile": "speeds.yaml", "margin": MARGIN}
        self.daemon = Daemon(cluster, folder, plugins=[{"sareg": options}, "first-fit"])

    def submit(self, name: str, size: int, comment: str = "", deadline: float = 3600.0, **more: Any) -> str:
        """A job with ``size`` bytes of input, which is signed and sealed."""
        work = self.folder / name
        prepare(work, size, self.keys)
        words = f"headway:{','.join(wanted(size, time.time() + deadline))} {comment}".rstrip()
        lines = script(work, str(HEADWAY), "slurm", self.folder / "keys")
        return self.cluster.submit(1, script=lines, comment=words, **more)

    def report(self, name: str) -> Report:
        return read_report(self.folder / name / "took.json")

    def ended(self, *jobs: str) -> dict[str, JobEnded]:
        def ends() -> dict[str, JobEnded]:
            return {event.job_id: event for event in self.daemon.events(JobEnded)}

        self.daemon.until(lambda: set(jobs) <= ends().keys(), what="the jobs end")
        return ends()

    def told(self) -> set[str]:
        """Jobs that told what their protection took."""
        changes = self.daemon.events(JobChanged)
        return {e.job.id for e in changes if "took" in (e.job.attributes or {}).get("notes", {})}

    def planned(self) -> dict[str, float]:
        """Seconds by which each job's limit was lengthened, as the model says."""
        limits = [d for _, d in self.daemon.decisions() if isinstance(d, SetTimeLimit)]
        return {d.job_id: float(d.reason.split()[0]) for d in limits}


@pytest.fixture
def site(slurm_cluster: Any, tmp_path: Path) -> Iterator[Site]:
    made = Site(slurm_cluster, tmp_path)
    try:
        yield made
    finally:
        made.daemon.clean_up()


def test_levels_are_promised_carried_out_and_learnt_from(site: Site) -> None:
    daemon = site.daemon
    daemon.start()
    theirs = """scopred:app=turn "it's mine" $(x) \\\\"""
    jobs = [site.submit(f"j{number}", 2_000_000, theirs) for number in range(3)]
    # Five minutes of work, and one until the deadline.
    late = site.submit("late", 1000, deadline=60.0)
    ends = site.ended(*jobs)
    for number, job in enumerate(jobs):
        said = (site.folder / f"j{number}" / "said").read_text()
        assert (ends[job].outcome, ends[job].exit_code) == ("completed", 0), said
    assert {d.job_id: d.value for _, d in daemon.decisions() if isinstance(d, Annotate)} == dict.fromkeys(
        jobs, LABEL
    )
    assert_protected(site.folder / "j0", site.keys, 2_000_000, jobs[0])
    report = site.report("j0")

    # The other could not be promised its deadline: it waits, and says why.
    daemon.until(lambda: late in {e.job.id for e in daemon.events(JobSubmitted)}, what="it is seen")
    told = daemon.command("explain", late)
    assert "its deadline cannot be met" in " ".join(told.stdout.split()), told.stderr

    # What its user wrote is as it was, for other plugins, too.
    daemon.until(lambda: set(jobs) <= site.told(), what="all have told what it took")
    (attributes, *_) = [e.job.attributes for e in daemon.events(JobSubmitted) if e.job.id == jobs[0]]
    assert attributes["comment"] == theirs and attributes["security"]["encryption"] == [1.0, 1.0]

    # The next is promised what those three really took.
    speeds = {
        (s.service, s.option): statistics.median(
            one.seconds / one.bytes for r in range(3) for one in site.report(f"j{r}").services
            if one.option == s.option
        )
        for s in report.services if s.service != "authentication"
    }  # fmt: skip
    # A profile has MB/s, and no speed is learnt that is further than a factor of 20 from it.
    known = {o.name: o.speed for ladder in parse_profile(site.profile, "p").ladders for o in ladder}
    expected = sum(
        4e6 * min(max(each, 1 / (20 * known[option])), 20 / known[option])
        for (_, option), each in speeds.items()
    )
    fourth = site.submit("j3", 2_000_000)
    site.ended(fourth)
    signing = need_of({"authentication": [0.8, 0.8]}, parse_profile(site.profile, "p"), "").ladders[2][0]
    assert site.report("j3").exit_code == 0
    assert site.planned()[fourth] == pytest.approx(expected + signing.seconds, abs=2e-3)
    assert not daemon.said("plugin failed")
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_promises_and_refusals_outlive_a_kill(site: Site) -> None:
    daemon, cluster = site.daemon, site.cluster
    daemon.start()

    def submit(deadline: float, seconds: float = 0, hold: bool = True) -> str:
        words = f"headway:deadline={time.time() + deadline:.0f},bytes=1000000"
        return cluster.submit(4, seconds, comment=words, nodes=4, exclusive=True, hold=hold)

    def told(job: str) -> str:
        return " ".join(daemon.command("explain", job).stdout.split())

    first = submit(3600, seconds=3600)
    daemon.until(lambda: cluster.state(first) == "RUNNING", what="the first runs")
    # The first may run for five minutes, so a third cannot be in time behind it.
    # Never held by their user, not even until they are an administrator's: who is then promised a time later.
    second, third = submit(3600, hold=False), submit(400, hold=False)
    daemon.until(lambda: third in {e.job.id for e in daemon.events(JobSubmitted)}, what="they are seen")
    said = told(second)
    assert "it was promised a start in" in said and "encryption=" in said, said
    why = told(third)
    assert "its deadline cannot be met" in why, why
    daemon.kill()
    daemon.start()
    cluster.run("scancel", first)
    daemon.until(lambda: cluster.state(second) == "COMPLETED", what="the second is run in the first's place")
    assert "its deadline cannot be met" in told(third)
    assert not daemon.said("plugin failed")
    assert daemon.stop() == 0
    daemon.assert_replays()


@pytest.mark.campaign
def test_what_protection_really_takes_beside_the_model(site: Site) -> None:
    """Rounds of jobs with 20 MB and 200 MB each way."""
    site.daemon.start()
    for size in (20_000_000, 200_000_000):
        for number in range(8):
            name = f"{size}-{number}"
            job = site.submit(name, size)
            assert site.ended(job)[job].outcome == "completed", (site.folder / name / "said").read_text()
            site.daemon.until(lambda job=job: job in site.told(), what="it told")  # type: ignore[misc]
            report = site.report(name)
            each = ", ".join(f"{s.option} {s.bytes / s.seconds / 1e6:.0f} MB/s" for s in report.services)
            print(f"{size / 1e6:.0f} MB, run {number + 1}: model {site.planned()[job]:.3f} s, "
                  f"measured {report.seconds:.3f} s ({each})")  # fmt: skip
    assert site.daemon.stop() == 0
    site.daemon.assert_replays()
