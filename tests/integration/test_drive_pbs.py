"""The PBS adapter and ``headway run`` against the commands of ``headway emulate-commands pbs``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emulated_commands import Commands
from live_daemon import Daemon
from waiting import bound, limit, until

from headway import decisions as d
from headway import events as ev
from headway.model import Reservation
from headway_adapters.commands import Emulator, EmulatorOptions
from headway_adapters.pbs import PbsAdapter, select, values

pytestmark = pytest.mark.waits

SLEEP = ("--", "/bin/sleep")


class Site:
    """An emulated PBS, what users and administrators do on it, and headway beside it."""

    def __init__(self, emulator: Emulator, directory: Path) -> None:
        self.emulator = emulator
        self.commands = Commands(emulator)
        self.directory = directory

    def submit(self, *words: str, seconds: float = 600, user: str = "alice") -> str:
        """A job's id; it runs for so many of its own seconds."""
        return self.commands.ok("qsub", *words, *SLEEP, str(seconds), user=user).strip()

    def jobs(self) -> dict[str, dict[str, Any]]:
        return self.commands("qstat", "-x", "-t", "-f", "-F", "json").json.get("Jobs", {})

    def state(self, job_id: str) -> str:
        return str(self.jobs()[job_id]["job_state"])

    def wrong(self, fault: str) -> None:
        """Let something be wrong with PBS's commands."""
        self.commands.ok("emulator-ctl", "fault", fault)

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "queues": ["workq"], "bin_dir": str(self.emulator.bin), "poll_interval": 0.3,
            "commands_per_minute": None, **more,
        }  # fmt: skip

    def daemon(self) -> Daemon:
        one = Daemon(SimpleNamespace(conf="", options={}), self.directory)
        one.configure(cluster={"adapter": "pbs", "options": self.options()})
        return one


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    options = {"nodes": 4, "processors": 8, "scheduling": False, **getattr(request, "param", {})}
    with Emulator(tmp_path / "pbs", EmulatorOptions(system="pbs", **options)) as emulator:
        yield Site(emulator, tmp_path)


@pytest.fixture
def daemon(site: Site) -> Iterator[Daemon]:
    one = site.daemon()
    yield one
    one.clean_up()


class Driven:
    """An adapter in drive mode, and the events that it told."""

    def __init__(self, site: Site, **options: Any) -> None:
        self.adapter = PbsAdapter(site.options(**options))
        self.cluster = self.adapter.describe()
        self.events: list[ev.Event] = []

    def until(self, kind: type[ev.Event], job_id: str = "", seconds: float = 20.0) -> Any:
        """The next event of this kind (about this job)."""
        end = time.time() + limit(seconds)
        while time.time() < end:
            for at, event in enumerate(self.events):
                about = event.job.id if isinstance(event, ev.JobSubmitted) else getattr(event, "job_id", "")
                if isinstance(event, kind) and (not job_id or about == job_id):
                    del self.events[at]
                    return event
            moment = self.adapter.wait(end)
            assert moment is not None
            self.events += moment[1]
        raise AssertionError(f"no {kind.__name__} of {job_id}: {self.events}")

    def apply(self, decision: d.Decision) -> Any:
        return self.adapter.apply(time.time(), [decision])[0]

    def do(self, decision: d.Decision) -> None:
        outcome = self.apply(decision)
        assert outcome.accepted, outcome.message

    def start(self, job_id: str, *placement: tuple[str, int]) -> Any:
        self.until(ev.JobSubmitted, job_id)
        self.do(d.Start(job_id, placement))
        return self.until(ev.JobStarted, job_id)


@pytest.fixture
def drive(site: Site) -> Iterator[Driven]:
    one = Driven(site)
    with one.adapter:
        yield one


# ---------------------------------------------------------------------- every decision


def test_a_job_runs_where_it_was_sent_and_its_end_is_told(site: Site, drive: Driven) -> None:
    nodes = [node.name for node in drive.cluster.nodes]
    job = site.submit("-l", "select=3:ncpus=2", "-l", "walltime=01:00:00", seconds=1)
    told = drive.start(job, (nodes[1], 4), (nodes[3], 2))
    assert told.placement == ((nodes[1], 4), (nodes[3], 2))
    assert told.time == pytest.approx(time.time(), abs=5)
    assert drive.until(ev.JobEnded, job).outcome == "completed"


def test_every_decision_has_its_effect(site: Site, drive: Driven) -> None:
    first, second, *_ = (node.name for node in drive.cluster.nodes)
    job = site.submit("-l", "select=2:ncpus=4", "-l", "place=scatter", "-l", "walltime=01:00:00")
    drive.until(ev.JobSubmitted, job)
    drive.do(d.Hold(job))
    drive.until(ev.JobHeld, job)
    assert not drive.apply(d.Start(job, ((first, 4), (second, 4)))).accepted
    drive.do(d.Release(job))
    drive.until(ev.JobReleased, job)
    drive.do(d.Start(job, ((first, 4), (second, 4))))
    drive.until(ev.JobStarted, job)
    drive.do(d.SetTimeLimit(job, 5400))
    assert drive.until(ev.JobChanged).job.request.walltime == 5400
    drive.do(d.Suspend(job))
    drive.until(ev.JobSuspended, job)
    assert drive.until(ev.NodeDown).reason.startswith("in maintenance")
    drive.do(d.Resume(job))
    drive.until(ev.JobResumed, job)
    drive.do(d.Resize(job, 4, ((first, 4),)))
    assert drive.until(ev.JobMigrated, job).placement == ((first, 4),)
    drive.do(d.Requeue(job))
    drive.until(ev.JobRequeued, job)
    drive.do(d.Cancel(job))
    assert drive.until(ev.JobEnded, job).outcome == "cancelled"
    other = site.submit()
    drive.start(other, (first, 1))
    drive.do(d.Kill(other))
    assert drive.until(ev.JobEnded, other).outcome == "cancelled"
    drive.do(d.Kill(other))


def test_a_full_vnode_is_refused_though_pbs_would_take_it(site: Site, drive: Driven) -> None:
    (node, *_) = (node.name for node in drive.cluster.nodes)
    full, more = site.submit("-l", "select=1:ncpus=8"), site.submit("-l", "select=1:ncpus=1")
    drive.start(full, (node, 8))
    drive.until(ev.JobSubmitted, more)
    outcome = drive.apply(d.Start(more, ((node, 1),)))
    assert outcome.message == f"job {more}: vnode {node} has 0 processors free, not 1"
    assert site.state(more) == "Q"


def test_a_job_that_vanishes_is_said_to_have_vanished(site: Site, drive: Driven) -> None:
    job = site.submit()
    drive.until(ev.JobSubmitted, job)
    site.commands.ok("emulator-ctl", "drop", job)
    assert drive.until(ev.JobEnded, job).outcome == "vanished"


def test_a_refused_start_is_told(site: Site, drive: Driven) -> None:
    job = site.submit()
    drive.until(ev.JobSubmitted, job)
    site.wrong("refuse-start")
    outcome = drive.apply(d.Start(job, ((drive.cluster.nodes[0].name, 1),)))
    assert not outcome.accepted
    assert drive.until(ev.DecisionFailed).message == outcome.message


def test_arrays_dependencies_holds_and_begin_times(site: Site, drive: Driven) -> None:
    node = drive.cluster.nodes[0].name
    array = site.submit("-J", "1-3")
    ids = [array.replace("[]", f"[{at}]") for at in (1, 2, 3)]
    for element in ids:
        described = drive.until(ev.JobSubmitted, element).job
        assert (described.array_id, described.held) == (array, False)
    drive.do(d.Start(ids[1], ((node, 1),)))
    drive.until(ev.JobStarted, ids[1])
    after = site.submit("-W", f"depend=afterok:{(first := site.submit(seconds=1))}")
    waiting = drive.until(ev.JobSubmitted, after).job
    assert [dependency.job_id for dependency in waiting.dependencies] == [first]
    drive.start(first, (node, 1))
    drive.until(ev.JobEnded, first)
    assert drive.until(ev.JobChanged).job.dependencies == ()
    held = site.submit("-h")
    assert drive.until(ev.JobSubmitted, held).job.held
    site.commands.ok("qrls", "-h", "u", held, user="alice")
    drive.until(ev.JobReleased, held)
    due = time.time() + 7200
    late = site.submit("-a", time.strftime("%m%d%H%M", time.gmtime(due)), "-v", "HEADWAY=dedicated")
    described = drive.until(ev.JobSubmitted, late).job
    assert described.begin_time == pytest.approx(due, abs=60)
    assert described.attributes == {"requested_start": described.begin_time}


NAMES = ["two words", 'a "quote"', "it's", "$(reboot)", "; rm -rf /", "a\\b", "ümlaut", "x" * 200]


def test_whatever_users_call_things_their_jobs_run(site: Site, drive: Driven) -> None:
    node = drive.cluster.nodes[0].name
    for name in NAMES:
        job = site.submit("-v", f"A={name},B=two\nlines")
        drive.start(job, (node, 1))
        drive.do(d.Kill(job))


@pytest.mark.parametrize("fault", ["down", "garbage", "truncate"])
def test_an_outage_is_no_news(site: Site, drive: Driven, fault: str) -> None:
    job = site.submit()
    drive.start(job, (drive.cluster.nodes[0].name, 1))
    site.wrong(fault)
    end = time.time() + 2
    while time.time() < end:
        moment = drive.adapter.wait(end)
        assert moment is not None
        assert [event for event in moment[1] if not isinstance(event, ev.ClusterSilent)] == []
    site.wrong("none")
    drive.do(d.Kill(job))
    drive.until(ev.JobEnded, job)


def test_a_start_into_an_outage_happens_once_or_is_told(site: Site, drive: Driven) -> None:
    node = drive.cluster.nodes[0].name
    job = site.submit()
    drive.until(ev.JobSubmitted, job)
    site.wrong("down@qrun")
    drive.apply(d.Start(job, ((node, 1),)))
    site.wrong("none")
    assert site.state(job) == "Q"
    # Nobody answered, so it counts as on its way: the looks tell that it is not.
    drive.adapter.flights[job].deadline = 0.0
    assert "did not start" in drive.until(ev.DecisionFailed).message


@pytest.mark.parametrize("site", [{"scheduling": True}], indirect=True)
def test_reservations_beside_pbss_own_scheduler(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.commands.ok("qmgr", "-c", "set queue workq started = False")
    drive = Driven(site, reservations=True)
    nodes = [node.name for node in drive.cluster.nodes]
    with drive.adapter:
        drive.start(site.submit(), (nodes[3], 1))
    # PBS lets root make no reservation.
    monkeypatch.setenv("HEADWAY_EMULATED_USER", "headway:manager")
    drive = Driven(site, reservations=True)
    with drive.adapter:
        drive.until(ev.JobStarted)
        now = time.time()
        drive.do(d.Reserve(Reservation("r1", now + 3600, now + 7200, nodes=tuple(nodes[:2]), users=("bob",))))
        made = drive.until(ev.ReservationMade).reservation
        assert (made.id, list(made.nodes), made.users, made.ours) == ("r1", nodes[:2], ("bob",), True)
        assert made.start == pytest.approx(now + 3600, abs=2)
        job = site.submit("-l", "walltime=00:10:00", user="bob")
        drive.until(ev.JobSubmitted, job)
        drive.do(d.Bind(job, "r1"))
        changed = drive.until(ev.JobChanged).job
        assert (changed.id, changed.reservation, changed.pool[0]) == (job, "r1", "R")
        # PBS deletes the jobs of a reservation with it.
        drive.do(d.Bind(job, "", pool="workq"))
        changed = drive.until(ev.JobChanged).job
        assert (changed.id, changed.reservation, changed.pool) == (job, "", "workq")
        drive.do(d.Unreserve("r1"))
        assert drive.until(ev.ReservationEnded).reservation_id == "r1"
        assert site.state(job) == "Q"


# ---------------------------------------------------------------------- the daemon


def overlaps(site: Site) -> dict[str, int]:
    """The most processors that were in use on each vnode at one time, of 8."""
    changes: dict[str, list[tuple[float, int]]] = {}
    for record in site.jobs().values():
        begin, end = values.when(record.get("stime")), values.when(record.get("obittime"))
        if begin is None or "exec_vnode" not in record:
            continue
        for vnode, share in select.parse_exec_vnode(record["exec_vnode"]):
            changes.setdefault(vnode, []).append((begin, share.processors))
            # Times are whole seconds; what ends comes before what begins.
            changes[vnode].append((max((end or begin) - 1, begin), -share.processors))
    most: dict[str, int] = {}
    for vnode, listed in changes.items():
        used = 0
        for _, change in sorted(listed):
            used += change
            most[vnode] = max(most.get(vnode, 0), used)
    return most


def all_done(site: Site) -> bool:
    return all(record["job_state"] in "FX" for record in site.jobs().values())


@pytest.mark.long
@pytest.mark.parametrize("site", [{"speed": 60.0}], indirect=True)
def test_killed_again_and_again_it_runs_every_job_once(site: Site, daemon: Daemon) -> None:
    ids = []
    for at in range(40):
        chunks = f"select={1 + at % 3}:ncpus={1 << at % 4}"
        ids.append(site.submit("-l", chunks, "-l", "walltime=00:10:00", seconds=60 + at))
    for _ in range(3):
        daemon.start()
        seen = len(daemon.starts())
        # More, or nothing is left to decide.
        daemon.until(
            lambda seen=seen: len(daemon.starts()) > seen or all_done(site), what="it decides a start"
        )
        daemon.kill()
    daemon.start()
    daemon.until(lambda: all_done(site), seconds=120, what="all jobs have run")
    records = site.jobs()
    assert {records[job]["run_count"] for job in ids} == {1}
    assert {records[job]["Exit_status"] for job in ids} == {0}
    assert max(overlaps(site).values()) <= 8
    assert daemon.stop() == 0
    assert not daemon.said("inconsistent")


@pytest.mark.long
@pytest.mark.parametrize("site", [{"speed": 30.0}], indirect=True)
def test_an_outage_costs_no_job(site: Site, daemon: Daemon) -> None:
    running = site.submit("-l", "select=4:ncpus=8", "-l", "walltime=01:00:00", seconds=200)
    daemon.start()
    daemon.until(lambda: site.state(running) == "R", what="the first job runs")
    behind = site.submit("-l", "select=4:ncpus=8", seconds=30)
    site.wrong("down")
    daemon.until(lambda: daemon.said("pbs does not answer; waiting for it"), what="it sees the outage")
    time.sleep(2)
    site.wrong("none")
    daemon.until(lambda: daemon.said("pbs answers again"), what="it sees the end of the outage")
    daemon.until(lambda: all_done(site), seconds=60, what="both jobs have run")
    records = site.jobs()
    assert [records[job]["run_count"] for job in (running, behind)] == [1, 1]
    assert daemon.stop() == 0
    assert len(daemon.said("pbs does not answer; waiting for it")) == 1
    daemon.assert_replays()


@pytest.mark.long
def test_a_dedicated_job_starts_at_its_second(site: Site, daemon: Daemon) -> None:
    daemon.configure(plugins=["dedicated", "easy", "first-fit"])
    daemon.start()
    # The daemon must know the job in time, and before that three jobs are to run one behind the other.
    due = int(time.time() + bound(14))
    for _ in range(3):
        site.submit("-l", "select=2:ncpus=8", "-l", "walltime=00:00:08", seconds=6)
    at = time.strftime("%Y%m%d%H%M.%S", time.gmtime(due))
    job = site.submit("-l", "select=4:ncpus=8", "-a", at, "-v", "HEADWAY=dedicated", seconds=2)
    daemon.until(lambda: site.state(job) in "RF", seconds=40, what="the dedicated job starts")
    assert values.when(site.jobs()[job]["stime"]) == pytest.approx(due, abs=bound(1))
    assert daemon.stop() == 0


# ---------------------------------------------------------------------- as etc/pbs/README.md says


@pytest.mark.long
@pytest.mark.parametrize("site", [{"scheduling": True}], indirect=True)
def test_check_monitor_drive_give_back(site: Site, daemon: Daemon) -> None:
    def failed() -> list[str]:
        return [line for line in daemon.command("check").stdout.splitlines() if line.startswith("FAIL")]

    # Before: PBS schedules, and nothing else is wrong.
    assert [line.split()[1:3] for line in failed()] == [["server", "scheduling"]]

    # Monitor: PBS goes on by itself.
    daemon.configure(mode="monitor")
    own = site.submit("-l", "select=1:ncpus=8")
    daemon.start()
    assert site.state(own) == "R"
    site.commands.ok("qmgr", "-c", "set server scheduling = False")
    waiting = site.submit()
    daemon.until(
        lambda: waiting in [entry["job"] for entry in daemon.said("would do")],
        what="it says what it would do",
    )
    assert site.state(waiting) == "Q"
    assert f"Job {waiting} " in daemon.command("explain", waiting).stdout
    assert not [entry for entry in daemon.log() if entry["level"] in ("warning", "error")]
    assert daemon.stop() == 0

    # Drive.
    daemon.configure(mode="drive")
    assert failed() == []
    daemon.start()
    daemon.until(lambda: site.state(waiting) == "R", what="it starts the job")
    held = site.submit()
    daemon.until(lambda: site.state(held) == "R", what="it starts the second job")
    site.commands.ok("qsig", "-s", "admin-suspend", held)

    # Back.
    refused = daemon.command("give-back", "--all")
    assert refused.returncode == 1 and "a daemon drives with this configuration" in refused.stderr
    assert daemon.stop() == 0
    last = site.submit()
    done = daemon.command("give-back", "--all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "server scheduling: on", f"job {held}: suspended: qsig -s admin-resume {held}",
        "1 given back, 1 left",
    ]  # fmt: skip
    end = time.monotonic() + limit()
    while site.state(last) != "R":
        assert time.monotonic() < end, "PBS does not schedule again"
        time.sleep(0.2)
    assert site.state(waiting) == "R"


def test_explain_and_status_name_the_budget_when_starts_wait_for_it(site: Site, daemon: Daemon) -> None:
    """Of 60 commands a minute 20 are starts that may be run at once, here each in a command of its own."""
    kinds = [f"select=1:ncpus=1:mem={100 + number}mb" for number in range(30)]
    held = [site.submit("-h", "-l", kind, "-l", "walltime=600") for kind in kinds]
    last = site.submit("-h", "-l", "select=4:ncpus=8")
    daemon.configure(cluster={"adapter": "pbs", "options": site.options(commands_per_minute=60)})
    daemon.start()
    site.commands.ok("qrls", *held, last)
    said = "wait for the budget of commands, 60 a minute"
    daemon.until(lambda: said in daemon.command("status").stdout, what="status says so")
    explained = daemon.command("explain", last).stdout
    assert said in explained, explained
    assert "0 of 32 processors are free" not in explained
    assert len([entry for entry in daemon.log() if said in entry["event"]]) == 1
    daemon.until(lambda: all(site.state(job) == "R" for job in held), what="all have their turn")
    assert said not in daemon.command("status").stdout


def test_commands_take_a_jobs_number_without_the_server(site: Site, daemon: Daemon) -> None:
    whole = site.submit("-h")
    array = site.submit("-h", "-J", "1-3")
    daemon.start()
    number, _, server = whole.partition(".")
    for given, job in ((number, whole), (array.partition(".")[0], array), (f"{int(number) + 1}[2]", "")):
        job = job or f"{given}.{server}"
        explained = daemon.command("explain", given).stdout
        assert re.match(rf"Job (array )?{re.escape(job)} ", explained), explained
        fresh = daemon.command("explain", given, "--fresh").stdout
        assert fresh == daemon.command("explain", job, "--fresh").stdout
    recorded = daemon.command("explain", number, "--journal-only").stdout
    assert recorded.startswith(f"Job {whole} "), recorded
    unknown = daemon.command("explain", "999")
    assert (unknown.returncode, f"999.{server}" in unknown.stderr) == (2, True)


@pytest.mark.long
def test_the_server_schedules_again_while_headway_is_away_and_headway_leads_again(
    site: Site, daemon: Daemon, tmp_path: Path
) -> None:
    heartbeat = tmp_path / "heartbeat"
    options = {**daemon.config["cluster"]["options"], "heartbeat": str(heartbeat), "patience": 5}
    daemon.configure(cluster={"adapter": "pbs", "options": options})

    def given_back() -> bool:
        done = daemon.command("give-back", "--all", "--if-silent")
        assert done.returncode == 0, done.stderr
        return "server scheduling: on" in done.stdout

    daemon.start()
    daemon.until(heartbeat.exists, what="the heartbeat")
    assert not given_back()
    line = next(line for line in daemon.command("check").stdout.splitlines() if "failing open" in line)
    assert line.startswith("ok") and "s ago" in line
    daemon.kill()
    until(given_back, "the timer gives back")
    first = site.submit()
    until(lambda: site.state(first) == "R", "PBS starts a job")
    # What the unit says before the daemon.
    site.commands.ok("qmgr", "-c", "set server scheduling = False")
    daemon.start()
    second = site.submit()
    daemon.until(lambda: site.state(second) == "R", what="headway leads again")
    assert second in {start.job_id for _, start in daemon.starts()}
    assert not given_back()
