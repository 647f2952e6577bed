"""The adapter on the emulated commands of both flavours: every lever, seen from outside."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from waiting import limit

from headway import decisions as d
from headway import events as ev
from headway.cli import cli
from headway.config import load_config
from headway.daemon.giving_back import give_back as hand_over
from headway.errors import UserError
from headway.model import Reservation
from headway_adapters.commands.emulator import Emulator, EmulatorOptions
from headway_adapters.lsf import LsfAdapter, LsfOptions
from headway_adapters.lsf.give_back import main as give_back

pytestmark = pytest.mark.waits

FLAVOURS = ("ibm", "volclava")


class Site:
    """An emulated LSF with its queue inactivated, and an adapter that looks at it."""

    def __init__(self, directory: Path, flavour: str, **fields: Any) -> None:
        self.emulator = Emulator(
            directory,
            EmulatorOptions(system="lsf", nodes=2, processors=2, flavour=flavour, scheduling=False,
                            queues=("normal", "night")),
        )  # fmt: skip
        self.options = LsfOptions(
            **{
                "queues": ("normal",), "bin_dir": str(self.emulator.bin), "poll_interval": 0.1,
                "confirm_interval": 0.05, "command_timeout": 5.0, "start_timeout": 5.0, **fields,
            }
        )  # fmt: skip
        self.seen: list[ev.Event] = []

    def __enter__(self) -> Site:
        self.emulator.__enter__()
        self.adapter = LsfAdapter(self.options)
        self.cluster = self.adapter.describe()
        self.adapter.wait(time.time() + 5.0)
        return self

    def __exit__(self, *exc: object) -> None:
        self.adapter.close()
        self.emulator.__exit__(*exc)

    def run(self, *argv: str, ok: bool = True) -> str:
        path = f"{self.emulator.bin}:{os.environ['PATH']}"
        finished = subprocess.run(argv, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert (finished.returncode == 0) is ok, finished.stderr
        return finished.stdout

    def until(self, kind: type[ev.Event], job_id: str = "", seconds: float = 10.0) -> Any:
        """The first event of this kind (about this job) from now on."""

        def fits(event: ev.Event) -> bool:
            job = getattr(event, "job", None)
            about = job.id if job is not None else getattr(event, "job_id", "")
            return isinstance(event, kind) and (not job_id or about == job_id)

        end = time.time() + limit(seconds)
        while time.time() < end:
            found = next((event for event in self.seen if fits(event)), None)
            if found is not None:
                self.seen.remove(found)
                return found
            moment = self.adapter.wait(min(end, time.time() + 0.2))
            assert moment is not None
            self.seen += moment[1]
        raise AssertionError(f"no {kind.__name__} {job_id} within {seconds} s; seen: {self.seen}")

    def apply(self, decision: d.Decision, *, accepted: bool = True) -> str:
        (outcome,) = self.adapter.apply(time.time(), [decision])
        assert outcome.accepted is accepted, outcome.message
        return outcome.message

    def submit(self, *words: str) -> ev.JobSubmitted:
        """Submit, and wait until it is seen."""
        said = self.run("bsub", *words)
        number = said[said.index("<") + 1 : said.index(">")]
        found: ev.JobSubmitted = self.until(ev.JobSubmitted, number)
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(flavour: str, **fields: Any) -> Site:
        made = Site(tmp_path / flavour, flavour, **fields)
        sites.append(made.__enter__())
        return made

    yield make
    for made in sites:
        made.__exit__(None, None, None)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_parallel_job_runs_where_it_was_sent_and_ends(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    assert [node.name for node in lsf.cluster.nodes] == ["node1", "node2"]
    job = lsf.submit("-n", "3", "-W", "5", "-J", "a; $(b) 'c'", "sleep 1").job
    assert (job.name, job.request.processors, job.request.walltime) == ("a; $(b) 'c'", 3, 300.0)
    lsf.apply(d.Start(job.id, (("node1", 1), ("node2", 2))))
    started = lsf.until(ev.JobStarted, job.id)
    assert sorted(started.placement) == [("node1", 1), ("node2", 2)]
    assert lsf.until(ev.JobEnded, job.id).outcome == "completed"


def test_ibms_brun_gives_any_split(site: Callable[..., Site]) -> None:
    lsf = site("ibm")
    job = lsf.submit("-n", "2", "sleep 30").job
    lsf.apply(d.Start(job.id, (("node1", 1), ("node2", 1))))
    assert sorted(lsf.until(ev.JobStarted, job.id).placement) == [("node1", 1), ("node2", 1)]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_word_that_a_handler_is_configured_with_is_told_of_waiting_and_running_jobs(
    site: Callable[..., Site], flavour: str
) -> None:
    """As of ``checkpoint-signal: {attribute: saves-itself}``."""
    lsf = site(flavour)
    lsf.adapter.tell_words(["saves-itself"])
    job = lsf.submit("-Jd", "headway:saves-itself", "sleep 60").job
    assert job.attributes == {"saves-itself": True}
    lsf.apply(d.Start(job.id, (("node1", 1),)))
    lsf.until(ev.JobStarted, job.id)
    known = lsf.adapter.overlay.known(job.id)
    assert known is not None and known.job.attributes == {"saves-itself": True}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_job_of_a_range_runs_on_what_was_decided(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    job = lsf.submit("-n", "1,3", "sleep 30").job
    assert job.attributes is not None and job.attributes["most_processors"] == 3
    lsf.apply(d.Start(job.id, (("node1", 1),)))
    assert lsf.until(ev.JobStarted, job.id).placement == (("node1", 1),)
    wide = lsf.submit("-n", "2,3", "sleep 30").job
    lsf.apply(d.Start(wide.id, (("node1", 1), ("node2", 2))))
    assert sorted(lsf.until(ev.JobStarted, wide.id).placement) == [("node1", 1), ("node2", 2)]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_array_runs_as_many_elements_at_a_time_as_its_user_says(
    site: Callable[..., Site], flavour: str
) -> None:
    lsf = site(flavour)
    lsf.run("bsub", "-J", "odd [1]%9 name[1-3]%1", "sleep 60")
    jobs = [lsf.until(ev.JobSubmitted, f"1[{at}]").job for at in (1, 2, 3)]
    assert [job.held for job in jobs] == [False, True, True]
    lsf.apply(d.Start("1[1]", (("node1", 1),)))
    lsf.until(ev.JobStarted, "1[1]")
    said = lsf.apply(d.Start("1[2]", (("node1", 1),)), accepted=False)
    assert "its array runs at most 1 elements at a time" in said
    lsf.run("bkill", "1[1]")
    lsf.until(ev.JobReleased, "1[2]")
    lsf.apply(d.Start("1[2]", (("node1", 1),)))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_elements_of_an_array_are_started_one_by_one(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    lsf.run("bsub", "-J", "arr[1-3]", "sleep 30")
    jobs = [lsf.until(ev.JobSubmitted, f"1[{at}]").job for at in (1, 2, 3)]
    assert [(job.array_id, job.array_index) for job in jobs] == [("1", 1), ("1", 2), ("1", 3)]
    lsf.apply(d.Start("1[2]", (("node2", 1),)))
    assert lsf.until(ev.JobStarted, "1[2]").placement == (("node2", 1),)
    assert "arr[1]" in lsf.run("bjobs", "-p")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_brun_would_start_without_a_word_is_refused(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    first = lsf.submit("-n", "2", "sleep 60").job.id
    held = lsf.submit("-H", "sleep 5").job.id
    waits = lsf.submit("-w", f"done({first})", "sleep 5").job.id
    full = lsf.submit("sleep 5").job.id
    lsf.apply(d.Start(first, (("node1", 2),)))
    lsf.until(ev.JobStarted, first)
    assert "held" in lsf.apply(d.Start(held, (("node2", 1),)), accepted=False)
    assert "is not met" in lsf.apply(d.Start(waits, (("node2", 1),)), accepted=False)
    assert "0 slots free" in lsf.apply(d.Start(full, (("node1", 1),)), accepted=False)
    assert lsf.run("bjobs", "-r").count("\n") == 2


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_job_that_its_user_killed_meanwhile_is_not_started_again(
    site: Callable[..., Site], flavour: str
) -> None:
    lsf = site(flavour)
    job = lsf.submit("sleep 5").job.id
    lsf.run("bkill", job)
    assert "no longer pending" in lsf.apply(d.Start(job, (("node1", 1),)), accepted=False)
    assert lsf.until(ev.JobEnded, job).outcome == "cancelled"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_holding_suspending_requeueing_and_killing(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    job = lsf.submit("sleep 60").job.id
    lsf.apply(d.Hold(job))
    lsf.until(ev.JobHeld, job)
    lsf.apply(d.Release(job))
    lsf.until(ev.JobReleased, job)
    lsf.apply(d.Start(job, (("node1", 1),)))
    lsf.until(ev.JobStarted, job)
    lsf.apply(d.Suspend(job))
    lsf.until(ev.JobSuspended, job)
    lsf.apply(d.Resume(job))
    lsf.until(ev.JobResumed, job)
    lsf.apply(d.Requeue(job))
    lsf.until(ev.JobRequeued, job)
    lsf.apply(d.Start(job, (("node2", 1),)))
    assert lsf.until(ev.JobStarted, job).placement == (("node2", 1),)
    lsf.apply(d.Kill(job))
    assert lsf.until(ev.JobEnded, job).outcome == "cancelled"
    assert "already" in lsf.apply(d.Kill(job))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_sizes_and_limits(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    job = lsf.submit("-W", "10", "sleep 60").job.id
    lsf.apply(d.Resize(job, 2))
    assert lsf.until(ev.JobChanged, job).job.request.processors == 2
    lsf.apply(d.Start(job, (("node1", 2),)))
    lsf.until(ev.JobStarted, job)
    if flavour == "volclava":
        assert "refuses to change the limit" in lsf.apply(d.SetTimeLimit(job, 1200.0), accepted=False)
        said = lsf.apply(d.Resize(job, 1, (("node1", 1),)), accepted=False)
        assert "only IBM Spectrum LSF has bresize" in said
        return
    lsf.apply(d.SetTimeLimit(job, 1200.0))
    assert lsf.until(ev.JobChanged, job).job.request.walltime == 1200.0
    wide = lsf.submit("-n", "2", "-ar", "sleep 60").job.id
    lsf.apply(d.Kill(job))
    lsf.until(ev.JobEnded, job)
    lsf.apply(d.Start(wide, (("node1", 1), ("node2", 1))))
    lsf.until(ev.JobStarted, wide)
    lsf.apply(d.Resize(wide, 1, (("node1", 1),)))
    assert lsf.until(ev.JobMigrated, wide).placement == (("node1", 1),)


def test_reservations_of_ibms(site: Callable[..., Site]) -> None:
    lsf = site("ibm")
    start = (time.time() // 60 + 10) * 60
    wish = Reservation("r1", start, start + 600, nodes=("node1",), users=("root",))
    lsf.apply(d.Reserve(wish))
    made = lsf.until(ev.ReservationMade).reservation
    assert (made.id, made.start, made.end, made.nodes, made.ours) == (
        "r1",
        start,
        start + 600,
        ("node1",),
        True,
    )
    lsf.apply(d.Reserve(Reservation("r1", start + 600, start + 1200, nodes=("node2",), users=("root",))))
    assert lsf.until(ev.ReservationMade).reservation.nodes == ("node2",)
    lsf.apply(d.Unreserve("r1"))
    lsf.until(ev.ReservationEnded)


def test_hosts_sleep_and_wake_with_ibms(site: Callable[..., Site]) -> None:
    lsf = site("ibm", power=True)
    job = lsf.submit("sleep 1").job.id
    start = d.Start(job, (("node2", 1),))
    lsf.apply(d.PowerDown(("node2",)))
    # It sleeps and is not down: it can be woken when jobs need it.
    asleep = lsf.until(ev.NodePowerChanged)
    assert (asleep.node, asleep.power) == ("node2", "asleep")
    (outcome,) = lsf.adapter.apply(time.time(), [start])
    assert not outcome.accepted and "node2 is asleep" in outcome.message
    lsf.apply(d.PowerUp(("node2",)))
    awake = lsf.until(ev.NodePowerChanged)
    assert (awake.node, awake.power) == ("node2", "on")
    lsf.apply(start)
    assert lsf.until(ev.JobStarted, job).placement == (("node2", 1),)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_daemon_that_is_down_is_silence(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour, command_timeout=0.5)
    job = lsf.submit("sleep 2").job.id
    lsf.apply(d.Start(job, (("node1", 1),)))
    lsf.until(ev.JobStarted, job)
    lsf.run("emulator-ctl", "fault", "down")
    end = time.time() + 2.0
    told: list[ev.Event] = []
    while time.time() < end:
        moment = lsf.adapter.wait(end)
        assert moment is not None
        told += moment[1]
    assert [type(event) for event in told] in ([], [ev.ClusterSilent])
    lsf.run("emulator-ctl", "fault", "none")
    assert lsf.until(ev.JobEnded, job).outcome == "completed"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_control_is_given_back(
    site: Callable[..., Site],
    flavour: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lsf = site(flavour)
    held = lsf.submit("-H", "sleep 1").job.id
    job = lsf.submit("sleep 1").job.id
    monkeypatch.setenv("PATH", f"{lsf.emulator.bin}:{os.environ['PATH']}")
    assert give_back(["normal"]) == 0
    assert capsys.readouterr().out == f"queue normal: active\njob {held}: held; bresume releases it\n"
    assert lsf.until(ev.JobStarted, job).job_id == job


def test_giving_back_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert give_back([]) == 2
    assert give_back(["-x"]) == 2
    assert give_back(["a b"]) == 2
    assert give_back(["normal"]) == 1
    said = capsys.readouterr().err
    assert "usage: python -m headway_adapters.lsf.give_back" in said
    assert "'a b' is not the name of a queue" in said and "'bqueues' is not installed" in said


def test_giving_back_as_the_configuration_says(site: Callable[..., Site], tmp_path: Path) -> None:
    lsf = site("volclava")
    path = tmp_path / "site.yaml"
    path.write_text(
        f"cluster:\n  adapter: lsf\n  options: {{queues: [normal, night], bin_dir: {lsf.emulator.bin}}}\n"
        "mode: monitor\n"
    )
    config = load_config(path)
    assert [one.line for one in hand_over(config, ["night"]).things] == ["queue night: active"]
    given = hand_over(config, None, dry_run=True)
    assert [one.line for one in given.things] == ["queue normal: active"]
    assert hand_over(config, None).things == given.things
    assert not hand_over(config, None).things
    with pytest.raises(UserError, match="no pool is called 'day'"):
        hand_over(config, ["day"])


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_check_lists_what_this_lsf_can_and_nothing_else(
    site: Callable[..., Site], flavour: str, tmp_path: Path
) -> None:
    lsf = site(flavour)
    options = {"queues": ["normal"], "bin_dir": str(lsf.emulator.bin)}
    config = {"mode": "monitor", "plugins": ["easy"], "journal": str(tmp_path / "journal.sqlite")}
    (tmp_path / "site.yaml").write_text(
        yaml.safe_dump({**config, "cluster": {"adapter": "lsf", "options": options}})
    )
    done = CliRunner(env={"COLUMNS": "250"}).invoke(cli, ["check", "-c", str(tmp_path / "site.yaml")])
    (able,) = re.findall(r"capabilities +lsf: (.*?) *$", done.output, re.MULTILINE)
    assert set(able.split(", ")) == {kind.__name__ for kind in lsf.adapter.capabilities}, done.output
    assert ("Reserve" in able) == (flavour == "ibm")
    assert re.search(r"^ok +privilege +\S+ administers", done.output, re.MULTILINE), done.output
    assert done.exit_code == 0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_users_requeue_is_no_end_for_those_who_wait_for_it(site: Callable[..., Site], flavour: str) -> None:
    lsf = site(flavour)
    job = lsf.submit("-J", "R", "sleep 60").job.id
    waits = lsf.submit("-w", f"ended({job})", "sleep 5").job.id
    lsf.apply(d.Start(job, (("node1", 1),)))
    lsf.until(ev.JobStarted, job)
    lsf.run("brequeue", job)
    assert " EXIT " in lsf.run("bjobs", "-a", "-w", job)
    assert "is not met" in lsf.apply(d.Start(waits, (("node2", 1),)), accepted=False)
    lsf.until(ev.JobRequeued, job)
    assert not [e for e in lsf.seen if isinstance(e, ev.JobEnded)]
    assert "is not met" in lsf.apply(d.Start(waits, (("node2", 1),)), accepted=False)
