"""Nodes that sleep and wake on a real Slurm, through its power saving and through commands of the site.

Each test starts a Slurm of 4 nodes with 2 CPUs. A node that sleeps is one whose slurmd was ended; the
programs that Slurm, or headway, calls do that.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
from live_daemon import Daemon, Diary
from sleeping_slurm import Programs, begin, called, node_reason, node_state
from waiting import limit

from headway import decisions as d
from headway import events as ev
from headway_adapters.slurm import SlurmAdapter

pytestmark = pytest.mark.slurm


@pytest.fixture
def programs() -> Iterator[Programs]:
    directory = Path(tempfile.mkdtemp(prefix="hw-power-"))
    directory.chmod(0o755)
    yield Programs(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def resume_timeout() -> int:
    """Seconds after which Slurm gives up a node that does not wake: many, for a busy machine."""
    return 100


#: For tests in which one does not wake.
gives_up_soon = pytest.mark.parametrize("resume_timeout", [20])


@pytest.fixture
def cluster(slurm_factory: Callable[..., Any], programs: Programs, resume_timeout: int) -> Any:
    """4 nodes of 2 CPUs with Slurm's power saving."""
    return begin(slurm_factory, programs, resume_timeout)


class Driven:
    """An adapter on a cluster, every event that it told and everything that it logged."""

    def __init__(self, cluster: Any, **options: Any) -> None:
        settings = {"partitions": ["batch"], "poll_interval": 0.3, **cluster.options, **options}
        self.log: list[dict[str, Any]] = []
        self.events: list[ev.Event] = []
        self.programs = Path(cluster.root) / "log" / "power.out"
        with structlog.testing.capture_logs() as log:
            self.adapter = SlurmAdapter(settings, log=structlog.get_logger())
            self.description = self.adapter.describe()
        self.log += log

    def until(self, condition: Callable[[], object], seconds: float = 30.0, what: str = "") -> None:
        end = time.time() + limit(seconds)
        with structlog.testing.capture_logs() as log:
            while not condition():
                assert time.time() < end, (
                    f"{what}; told: {self.events[-10:]}; logged: {log}; "
                    f"the programs: {self.programs.read_text() if self.programs.exists() else 'not called'}"
                )
                moment = self.adapter.wait(time.time() + 0.5)
                assert moment is not None
                now, events = moment
                assert all(event.time <= now for event in events)
                self.events += events
        self.log += log

    def apply(self, decision: d.Decision) -> Any:
        with structlog.testing.capture_logs() as log:
            [outcome] = self.adapter.apply(time.time(), [decision])
        self.log += log
        return outcome

    def power(self, node: str) -> list[str]:
        """The power states of a node, one after another."""
        return [e.power for e in self.events if isinstance(e, ev.NodePowerChanged) and e.node == node]

    def downs(self, node: str) -> list[str]:
        return [e.reason for e in self.events if isinstance(e, ev.NodeDown) and e.node == node]

    def said(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self.log if entry["event"] == event]


@pytest.fixture
def drive(cluster: Any) -> Iterator[Callable[..., Driven]]:
    made: list[Driven] = []

    def drives(**options: Any) -> Driven:
        made.append(Driven(cluster, **options))
        made[-1].until(lambda: made[-1].adapter.overlay.raw is not None)
        return made[-1]

    yield drives
    for driven in made:
        driven.adapter.close()


# ---------------------------------------------------------------------- Slurm's power saving


def test_a_node_goes_to_sleep_and_wakes(cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive(power=True)
    assert {d.PowerDown, d.PowerUp} <= driven.adapter.capabilities
    assert driven.apply(d.PowerDown(("node1",), "idle")).accepted
    driven.until(lambda: driven.power("node1")[-1:] == ["asleep"], what="it sleeps")
    assert driven.power("node1") == ["falling asleep", "asleep"]
    assert called(cluster) == ["suspend node1"]
    assert driven.apply(d.PowerUp(("node1",), "wanted")).accepted
    driven.until(lambda: driven.power("node1")[-1:] == ["on"], what="it wakes")
    assert driven.power("node1") in (
        ["falling asleep", "asleep", "waking", "on"],
        ["falling asleep", "asleep", "on"],
    )
    assert driven.downs("node1") == [], "a sleeping node is in order"
    job = cluster.submit(2, 1)
    driven.until(lambda: any(isinstance(e, ev.JobSubmitted) and e.job.id == job for e in driven.events))
    assert driven.apply(d.Start(job, (("node1", 2),))).accepted
    driven.until(lambda: any(isinstance(e, ev.JobEnded) for e in driven.events), what="a job runs on it")


def test_a_wish_to_wake_that_slurm_would_forget(cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive(power=True)
    driven.apply(d.PowerDown(("node1",), "idle"))
    driven.until(lambda: driven.power("node1") == ["falling asleep"])
    assert driven.apply(d.PowerUp(("node1",), "needed after all")).accepted
    driven.until(lambda: driven.power("node1")[-1:] == ["on"], what="it wakes")
    assert called(cluster) == ["suspend node1", "resume node1"]


@gives_up_soon
def test_a_node_that_does_not_wake_is_drained_and_told(cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive(power=True)
    driven.apply(d.PowerDown(("node1",), "idle"))
    driven.until(lambda: driven.power("node1")[-1:] == ["asleep"])
    (cluster.root / "broken" / "node1").touch()
    driven.apply(d.PowerUp(("node1",), "wanted"))
    driven.until(lambda: driven.downs("node1"), what="it is told as down")
    assert "ResumeTimeout reached" in driven.downs("node1")[0]
    driven.until(lambda: "DRAIN" in node_state(cluster, "node1"), what="it is drained")
    assert node_reason(cluster, "node1") == "headway: did not wake in time"
    [said] = driven.said("a node does not wake; it is drained")
    assert (said["node"], said["log_level"]) == ("node1", "error")


def test_a_node_with_a_job_is_not_put_to_sleep(cluster: Any, drive: Callable[..., Driven]) -> None:
    job = cluster.submit(1, 30)
    driven = drive(power=True)
    driven.apply(d.Start(job, (("node1", 1),)))
    assert "is not idle: job" in driven.apply(d.PowerDown(("node1",), "idle")).message, "on its way"
    driven.until(lambda: any(isinstance(e, ev.JobStarted) for e in driven.events))
    assert "is not idle: job" in driven.apply(d.PowerDown(("node1",), "idle")).message, "running"
    assert called(cluster) == []


def test_who_slept_before_the_run_began_is_told(cluster: Any, drive: Callable[..., Driven]) -> None:
    first = drive(power=True)
    first.apply(d.PowerDown(("node1",), "idle"))
    first.until(lambda: first.power("node1")[-1:] == ["asleep"])
    second = drive(power=True)
    assert [node.name for node in second.description.nodes if not node.available] == []
    second.until(lambda: second.power("node1") == ["asleep"])
    second.apply(d.PowerUp(("node1",), "wanted"))
    second.until(lambda: second.power("node1")[-1:] == ["on"])


def test_without_the_option_a_sleeping_node_is_down(cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive()
    assert not {d.PowerDown, d.PowerUp} & driven.adapter.capabilities
    cluster.scontrol("update", "NodeName=node1", "State=POWER_DOWN")
    driven.until(lambda: driven.downs("node1"))
    assert "powering down" in driven.downs("node1")[0]


def test_dry_asks_slurm_for_nothing(cluster: Any, drive: Callable[..., Driven]) -> None:
    driven = drive(power=True, actuators={"dry": True})
    for _ in range(2):
        assert driven.apply(d.PowerDown(("node1",), "idle")).accepted
    time.sleep(2.0)
    assert node_state(cluster, "node1") == {"IDLE"} and called(cluster) == []
    [said] = driven.said("dry: would run")
    assert said["command"] == "scontrol update NodeName=node1 State=POWER_DOWN"


# ---------------------------------------------------------------------- commands of the site


def hooks(cluster: Any, programs: Programs, **more: Any) -> dict[str, Any]:
    root = (programs.directory / "root").read_text()
    alive = programs.script("alive", f'#!/bin/sh\nkill -0 "$(cat {root}/run/$1.pid)" 2>/dev/null\n')
    return {
        "power_down": cluster.within(programs.path("suspend"), "{node}"),
        "power_up": cluster.within(programs.path("resume"), "{node}"),
        "confirm_power": [alive, "{node}"],
        "confirm_interval": 0.3,
        "wake_timeout": 100.0,
        **more,
    }


def test_a_command_of_the_site_puts_a_node_to_sleep_and_wakes_it(
    cluster: Any, programs: Programs, drive: Callable[..., Driven]
) -> None:
    driven = drive(actuators=hooks(cluster, programs))
    driven.apply(d.PowerDown(("node1", "node2"), "idle"))
    driven.until(lambda: driven.power("node1")[-1:] == driven.power("node2")[-1:] == ["asleep"])
    assert "DRAIN" in node_state(cluster, "node1") and node_reason(cluster, "node1") == "headway: asleep"
    # Slurm misses it by and by, and that is no news.
    cluster.until(lambda: "DOWN" in node_state(cluster, "node1"), seconds=60)
    driven.until(lambda: "down" in driven.adapter.overlay.raw.snapshot.nodes["node1"].reason)
    # 24.11 adds that the node does not respond.
    assert driven.downs("node1") == [] and node_reason(cluster, "node1").startswith("headway: asleep")
    driven.apply(d.PowerUp(("node1",), "wanted"))
    driven.until(lambda: driven.power("node1")[-1:] == ["on"], what="it wakes")
    assert driven.power("node1") == ["falling asleep", "asleep", "waking", "on"]
    assert driven.power("node2") == ["falling asleep", "asleep"]
    assert node_state(cluster, "node1") == {"IDLE"}
    assert driven.downs("node1") == []


def test_a_wake_command_that_hangs_and_a_daemon_that_begins_anew(
    cluster: Any, programs: Programs, drive: Callable[..., Driven]
) -> None:
    hangs = programs.script("hangs", "#!/bin/sh\nsleep 600\n")
    first = drive(actuators=hooks(cluster, programs))
    first.apply(d.PowerDown(("node1",), "idle"))
    first.until(lambda: first.power("node1")[-1:] == ["asleep"])
    first.adapter.close()
    options = hooks(cluster, programs, power_up=[hangs, "{node}"], timeout=1.0, wake_timeout=3.0)
    second = drive(actuators=options)
    second.until(lambda: second.power("node1") == ["asleep"], what="the reason tells who sleeps")
    assert all(node.available for node in second.description.nodes)
    second.apply(d.PowerUp(("node1",), "wanted"))
    second.until(lambda: second.downs("node1"), what="it is given up")
    assert "did not wake within 3 s" in second.downs("node1")[0]
    assert node_reason(cluster, "node1") == "headway: did not wake within 3 s"
    failures = [e for e in second.events if isinstance(e, ev.DecisionFailed)]
    assert failures[0].decision == d.PowerUp(("node1",))
    assert second.said("a node could not be woken; trying again")[0]["node"] == "node1"
    left = [p.pid for p in psutil.process_iter(["cmdline"]) if hangs in (p.info["cmdline"] or ())]
    assert left == [], "nothing is left of the command"


def test_a_frequency_is_set_once_the_job_runs(
    cluster: Any, programs: Programs, drive: Callable[..., Driven]
) -> None:
    script = programs.script("clock", f'#!/bin/sh\necho "$@" >> {cluster.root}/power\n')
    driven = drive(
        actuators={
            "set_frequency": [script, "set", "{node}", "{job}", "{hertz}"],
            "reset_frequency": [script, "reset", "{node}", "{job}"],
        }
    )
    assert driven.adapter.capabilities >= {d.SetFrequency}
    job = cluster.submit(4, 3, nodes=2)
    driven.until(lambda: any(isinstance(e, ev.JobSubmitted) for e in driven.events))
    assert driven.apply(d.Start(job, (("node1", 2), ("node2", 2)), frequency=2.4e9)).accepted
    driven.until(lambda: any(isinstance(e, ev.JobFrequencyChanged) for e in driven.events))
    assert driven.apply(d.SetFrequency(job, 1.2e9, "cheaper")).accepted
    driven.until(lambda: any(isinstance(e, ev.JobEnded) for e in driven.events))
    driven.until(lambda: len(called(cluster)) == 6)
    told = [e for e in driven.events if isinstance(e, ev.JobStarted | ev.JobFrequencyChanged | ev.JobEnded)]
    assert [type(e).__name__ for e in told] == [
        "JobStarted", "JobFrequencyChanged", "JobFrequencyChanged", "JobEnded",
    ]  # fmt: skip
    assert sorted(called(cluster)[:2]) == [f"set node{n} {job} 2400000000" for n in (1, 2)]
    assert sorted(called(cluster)[2:4]) == [f"set node{n} {job} 1200000000" for n in (1, 2)]
    assert sorted(called(cluster)[4:]) == [f"reset node{n} {job}" for n in (1, 2)]
    assert "does not run" in driven.apply(d.SetFrequency(job, 1.2e9)).message


# ---------------------------------------------------------------------- the whole daemon


@gives_up_soon
def test_the_daemon_lets_nodes_sleep_and_places_jobs_around_one_that_does_not_wake(
    cluster: Any, tmp_path: Path
) -> None:
    """Idle nodes sleep, are woken for the queue, and one that fails costs no job."""
    daemon = Daemon(
        cluster, tmp_path,
        options={"power": True, "poll_interval": 0.3},
        plugins=["easy", "first-fit", {"power-down": {"idle": 1.0, "stay": 2.0, "margin": 1.0}}],
    )  # fmt: skip
    diary = Diary(cluster)
    try:
        daemon.start()
        daemon.until(
            lambda: all("POWERED_DOWN" in node_state(cluster, f"node{n}") for n in (1, 2, 3, 4)),
            seconds=60, what="all nodes sleep",
        )  # fmt: skip
        (cluster.root / "broken" / "node1").touch()
        jobs = [cluster.submit(2, nodes=1, script=diary.script(1.0)) for _ in range(6)]
        daemon.until(lambda: sum(diary.ended().values()) == 6, seconds=120, what="all jobs run")
        assert diary.ended() == dict.fromkeys(jobs, 1)
        daemon.until(lambda: "DRAIN" in node_state(cluster, "node1"), seconds=60)
        assert daemon.said("a node does not wake; it is drained")[0]["node"] == "node1"
        assert not any(node == "node1" for _, start in daemon.starts() for node, _ in start.placement)
        assert daemon.stop() == 0
    finally:
        daemon.clean_up()
    kinds = {type(decision).__name__ for _, decision in daemon.decisions()}
    assert {"PowerDown", "PowerUp", "Start"} <= kinds
    daemon.assert_replays()
