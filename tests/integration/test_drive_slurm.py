"""The whole daemon on a real Slurm: `headway run` as an operator runs it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_daemon import Daemon, Diary, shown
from slurm_releases import SLURM24
from waiting import bound, until

from headway import events as ev
from headway.emulation import emulate
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload.jobs import TraceJob

pytestmark = pytest.mark.slurm


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Makes daemons for clusters; they are gone after the test."""
    made: list[Daemon] = []

    def make(cluster: Any, **config: Any) -> Daemon:
        directory = tmp_path / f"site{len(made)}"
        directory.mkdir()
        made.append(Daemon(cluster, directory, **config))
        return made[-1]

    yield make
    for daemon in made:
        daemon.clean_up()


# ---------------------------------------------------------------------- sixty jobs


@dataclass(frozen=True)
class Wanted:
    """A job to submit. ``nodes`` 0: as many as it takes; else it asks for equal shares on so many.

    ``seconds`` may be a text for the shell: see :meth:`Diary.script`.
    """

    processors: int
    seconds: float | str
    minutes: int
    nodes: int = 0
    exclusive: bool = False

    def submit(self, cluster: Any, diary: Diary) -> str:
        more: dict[str, Any] = {"exclusive": True} if self.exclusive else {}
        if self.nodes:
            more["ntasks_per_node"] = self.processors // self.nodes
        return cluster.submit(
            self.processors, nodes=self.nodes or None, minutes=self.minutes,
            script=diary.script(self.seconds), **more,
        )  # fmt: skip

    def described(self, job_id: str) -> JobDescription:
        request = Request(
            self.processors, self.minutes * 60.0, nodes=self.nodes, exclusive=self.exclusive,
            processors_per_node=self.processors // self.nodes if self.nodes else 0,
        )  # fmt: skip
        return JobDescription(job_id, 0.0, request, pool="batch")


def mixed(count: int, seed: int) -> list[Wanted]:
    """Jobs of 1 to 16 processors for 1 to 4 seconds on 4 nodes of 4.

    Two things make their order of starts a matter of the policy alone. Each leaves no choice how many
    processors it takes on each of its nodes: where it does, Slurm shares them out anew at the start.
    And all limits are two minutes apart, so that who ends first by the limits does not hang on the
    second that Slurm's start times are rounded to.
    """
    rng = np.random.default_rng(seed)
    limits = 2 * rng.permutation(np.arange(1, count + 1))
    jobs = []
    for minutes in limits.tolist():
        seconds = float(rng.choice(np.arange(1.0, 4.25, 0.25), p=_SHORT))
        kind = rng.choice(["single", "whole", "shaped", "exclusive"], p=[0.4, 0.05, 0.4, 0.15])
        if kind == "shaped":
            nodes = int(rng.choice([1, 2, 3, 4], p=[0.5, 0.25, 0.15, 0.1]))
            jobs.append(Wanted(nodes * int(rng.integers(1, 5)), seconds, minutes, nodes))
        else:
            processors = {"single": 1, "whole": 16, "exclusive": int(rng.integers(1, 7))}[kind]
            jobs.append(Wanted(processors, seconds, minutes, exclusive=kind == "exclusive"))
    return jobs


_SHORT = np.arange(13, 0, -1) / 91


def assert_no_processor_was_given_twice(cluster: Any, diary: Diary) -> None:
    """From what the jobs wrote down about when they ran, and Slurm about where."""
    listed, ran = shown(cluster), diary.executions()
    for one, other in combinations(sorted(ran), 2):
        if ran[one].begin < ran[other].end and ran[other].begin < ran[one].end:
            both = listed[one].cells & listed[other].cells
            assert not both, f"jobs {one} and {other} were both on {sorted(both)}"


def assert_every_start_was_decided(daemon: Daemon, cluster: Any, jobs: Sequence[str]) -> None:
    """Each job ran where the journal's last word about it sent it."""
    listed = shown(cluster)
    decided = {start.job_id: start.placement for _, start in daemon.starts()}
    assert set(decided) == set(jobs)
    for job in jobs:
        assert set(listed[job].processors) == {node for node, _ in decided[job]}, job
        assert {node: len(cpus) for node, cpus in listed[job].processors.items()} == dict(decided[job]), job


def emulated_starts(
    jobs: Sequence[tuple[str, Wanted, float]], policy: str, leaving: Sequence[ev.JobLeaving] = ()
) -> list[tuple[float, str]]:
    """When (since the beginning) an emulation starts jobs that all wait at its beginning.

    ``jobs``: id, what it asks for, and the seconds for which it takes its processors. ``leaving``: what is
    known of jobs before their ends.
    """
    nodes = tuple(NodeDescription(f"node{at}", 4, pools=("batch",)) for at in range(1, 5))
    cluster = ClusterDescription("emulated", (PoolDescription("batch"),), nodes)
    plugins = [PluginConfig(policy), PluginConfig("first-fit")]
    result = emulate(
        cluster,
        [TraceJob(wanted.described(job), seconds) for job, wanted, seconds in jobs],
        plugins, Catalogue(), label=policy, keep_decisions=True, happens=leaving,
    )  # fmt: skip
    assert all(record.accepted for record in result.decisions)
    return [(record.time, record.decision.job_id) for record in result.decisions]


def occupied(
    daemon: Daemon,
) -> tuple[list[tuple[float, str]], dict[str, float], list[ev.JobLeaving]]:
    """The run's starts, and for how long each job took its processors, as the scheduler knew it:
    from the cycle that decided its start to the cycle that learned of its end. If Slurm takes a moment to
    free the nodes of a job, the scheduler learns before its end that the job leaves, and expects it soon.

    Times are since the first cycle, in whole 1/1024 seconds, so that sums of them are exact.
    """
    cycles = daemon.cycles()
    zero = cycles[0].now
    starts: list[tuple[float, str]] = []
    seconds: dict[str, float] = {}
    leaving: list[ev.JobLeaving] = []
    for cycle in cycles:
        now = round((cycle.now - zero) * 1024) / 1024
        starts += [(now, decision.job_id) for decision in cycle.decisions]
        began = {job: at for at, job in starts}
        for event in cycle.events:
            if isinstance(event, ev.JobEnded):
                seconds[event.job_id] = now - began[event.job_id]
            elif isinstance(event, ev.JobLeaving):
                leaving.append(ev.JobLeaving(now, event.job_id))
    return starts, seconds, leaving


@pytest.mark.both_slurms
def test_sixty_jobs_run_as_decided_and_as_emulated(slurm_cluster: Any, site: Callable[..., Daemon]) -> None:
    diary = Diary(slurm_cluster)
    wanted = mixed(60, seed=3)
    ids = [job.submit(slurm_cluster, diary) for job in wanted]
    daemon = site(slurm_cluster)
    daemon.start()

    def none_twice_and_done() -> bool:
        listed = shown(slurm_cluster)
        running = [job for job in listed.values() if job.state == "RUNNING"]
        assert all(not one.cells & other.cells for one, other in combinations(running, 2))
        return all(listed[job].state == "COMPLETED" for job in ids)

    daemon.until(none_twice_and_done, 180, "all jobs complete")
    daemon.until(lambda: len(daemon.events(ev.JobEnded)) == 60, what="the daemon knows that all ended")
    assert daemon.stop() == 0

    assert diary.begun() == diary.ended() == Counter(ids)
    assert_no_processor_was_given_twice(slurm_cluster, diary)
    assert_every_start_was_decided(daemon, slurm_cluster, ids)
    assert sorted(start.job_id for _, start in daemon.starts()) == sorted(ids)
    assert not daemon.events(ev.DecisionFailed)
    daemon.assert_replays()
    assert not [entry for entry in daemon.log() if entry["level"] in ("warning", "error")]

    starts, seconds, leaving = occupied(daemon)
    ran = [(job, asked, seconds[job]) for job, asked in zip(ids, wanted, strict=True)]
    repeated = emulated_starts(ran, "easy", leaving)
    assert repeated == starts
    # Some were backfilled, or this would say little.
    assert [job for _, job in starts] != ids


# ---------------------------------------------------------------------- crashes


def anything(count: int, seed: int) -> list[Wanted]:
    """Jobs of 1 to 16 processors for 1 to 3 seconds, many of which may be spread over nodes at will."""
    rng = np.random.default_rng(seed)
    return [
        Wanted(
            int(rng.choice([1, 1, 2, 2, 3, 4, 5, 7, 10, 16])),
            float(rng.choice([1.0, 1.5, 2.0, 3.0])),
            int(rng.choice([1, 2, 5])),
            exclusive=bool(rng.random() < 0.1),
        )
        for _ in range(count)
    ]


def test_killed_again_and_again_it_runs_every_job_once(
    slurm_cluster: Any, site: Callable[..., Daemon]
) -> None:
    diary = Diary(slurm_cluster)
    ids = [job.submit(slurm_cluster, diary) for job in anything(20, seed=5)]
    daemon = site(slurm_cluster, options={"poll_interval": 0.3})
    rng = np.random.default_rng(7)

    def decides(known: int) -> bool:
        """It has decided more, or nothing is left to decide."""
        starts = daemon.starts()
        return len(starts) > known or {start.job_id for _, start in starts} == set(ids)

    for round_ in range(7):
        daemon.start()
        decided = len(daemon.starts())
        if round_ % 2:
            # In the middle of a burst of starts.
            daemon.until(partial(decides, decided), what="it decides")
        time.sleep(float(rng.uniform(0.0, 0.6)))
        daemon.kill()
        if round_ == 3:
            time.sleep(4.0)
    # Ended while nobody watched, in flight when their master died, waiting: all kinds are there now.
    daemon.start()
    daemon.until(lambda: diary.ended() == Counter(ids), 90, "all jobs end")
    daemon.until(lambda: not any(job.state == "COMPLETING" for job in shown(slurm_cluster).values()))
    assert daemon.stop() == 0
    assert diary.begun() == diary.ended() == Counter(ids)
    assert {job.fields["Restarts"] for job in shown(slurm_cluster).values()} == {"0"}
    assert_no_processor_was_given_twice(slurm_cluster, diary)
    listed = shown(slurm_cluster)
    last = {start.job_id: {node for node, _ in start.placement} for _, start in daemon.starts()}
    assert last == {job: set(listed[job].processors) for job in ids}
    assert [run.ended_at is None for run in daemon.runs()] == [True] * 7 + [False]
    daemon.assert_replays()


def test_starts_in_flight_are_recognised_after_a_crash(
    slurm_factory: Callable[..., Any], site: Callable[..., Daemon]
) -> None:
    """Slurm puts off its next look at its queue until it is told otherwise; the daemon dies in between."""
    patience = "batch_sched_delay=600,sched_interval=600,bf_interval=600"
    cluster = slurm_factory("--set", f"SchedulerParameters={patience}")
    diary = Diary(cluster)

    def looks() -> int:
        return int(re.findall(r"Total cycles: +(\d+)", cluster.run("sdiag"))[0])

    before = looks()
    ids = [Wanted(4, 2, 5).submit(cluster, diary) for _ in range(6)]
    # The delay counts from its last look, and the first submission makes it look.
    until(lambda: looks() > before, "Slurm has looked at its queue")
    # It takes no start for lost meanwhile, however long the machine needs for the rest.
    daemon = site(cluster, options={"start_timeout": 600.0})
    daemon.start()
    daemon.until(lambda: len(daemon.said("decided")) == 4, what="four starts are decided")
    daemon.until(lambda: sum(job.fields["Priority"] != "0" for job in shown(cluster).values()) == 4)
    daemon.kill()
    assert not diary.begun()
    daemon.start()
    daemon.until(lambda: len(daemon.events(ev.JobReleasing)) == 4, what="it sees the starts on their way")
    assert sorted(event.job_id for event in daemon.events(ev.JobReleasing)) == ids[:4]
    assert sorted(e["job"] for e in daemon.said("a start is still on its way since the last run")) == ids[:4]
    conf = Path(cluster.conf)
    conf.write_text(conf.read_text().replace(patience, "batch_sched_delay=0"))
    # A delay that is being waited out takes no new value.
    cluster.saved()
    cluster.kill("slurmctld", "TERM")
    cluster.up("slurmctld")
    daemon.until(lambda: diary.ended() == Counter(ids), 40, "all jobs end")
    assert daemon.stop() == 0
    assert diary.begun() == Counter(ids)
    # Nobody decided the same start twice.
    assert sorted(start.job_id for _, start in daemon.starts()) == ids


@pytest.mark.both_slurms
def test_slurmctld_dies_and_comes_back_and_every_job_runs_once(
    slurm_cluster: Any, site: Callable[..., Daemon]
) -> None:
    diary = Diary(slurm_cluster)
    # The first two fill the cluster; one ends while slurmctld is away.
    one, other = (slurm_cluster.root / name for name in ("one-may-end", "other-may-end"))
    wanted = [Wanted(8, f"0; until [ -e {gate} ]; do sleep 0.1; done", 30, 2) for gate in (one, other)]
    wanted += [Wanted(4, 1.5, 5, 1) for _ in range(6)]
    ids = [job.submit(slurm_cluster, diary) for job in wanted]
    daemon = site(slurm_cluster, options={"command_timeout": bound(2.0)})
    daemon.start()
    daemon.until(lambda: diary.begun() == Counter(ids[:2]), what="the first two run")
    slurm_cluster.saved()
    slurm_cluster.kill("slurmctld")
    daemon.until(lambda: daemon.said("slurm does not answer; waiting for it"), what="it sees the outage")
    one.touch()
    daemon.until(lambda: diary.ended() == Counter(ids[:1]), what="one ends meanwhile")
    slurm_cluster.up("slurmctld")
    daemon.until(lambda: daemon.said("slurm answers again"), what="it sees the end of the outage")
    # The second time in good order, with starts under way.
    daemon.until(lambda: len(daemon.starts()) >= 4, what="it goes on")
    other.touch()
    slurm_cluster.kill("slurmctld", "TERM")
    daemon.until(lambda: len(daemon.said("slurm does not answer; waiting for it")) == 2)
    time.sleep(1.0)
    slurm_cluster.up("slurmctld")
    daemon.until(lambda: diary.ended() == Counter(ids), 60, "all jobs end")
    assert daemon.stop() == 0
    assert diary.begun() == Counter(ids)
    assert_no_processor_was_given_twice(slurm_cluster, diary)
    # Each outage was told once, however many looks failed.
    assert len(daemon.said("slurm does not answer; waiting for it")) == 2
    assert len(daemon.said("slurm answers again")) == 2
    daemon.assert_replays()


# ---------------------------------------------------------------------- what users ask for


@pytest.mark.both_slurms
def test_holds_dependencies_begin_times_arrays_and_reservations(
    slurm_cluster: Any, site: Callable[..., Daemon]
) -> None:
    diary = Diary(slurm_cluster)

    def submit(seconds: float, processors: int = 1, *, exit_code: int = 0, **more: Any) -> str:
        return slurm_cluster.submit(processors, script=diary.script(seconds, exit_code), **more)

    slurm_cluster.scontrol(
        "create", "reservation", "ReservationName=repair", "StartTime=now+2minutes", "Duration=30",
        "Users=root", "Nodes=node4", "Flags=MAINT",
    )  # fmt: skip
    overlapping = [submit(5, 4, nodes=1, minutes=5) for _ in range(4)]
    short = submit(2, 4, nodes=1, minutes=1)
    by_user = submit(1, administrator=False)
    before = submit(1.5)
    after = submit(1, dependency=f"afterok:{before}")
    failing = submit(1, exit_code=3)
    never = submit(1, dependency=f"afterok:{failing}")
    begin = time.time() + 12
    later = submit(1, begin=time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin)))
    array = submit(1.5, array="1-5%2")
    daemon = site(slurm_cluster)
    daemon.start()

    daemon.until(lambda: len(diary.begun()) >= 4, what="four jobs run")
    # Three of the long jobs fill three nodes; on the fourth, only what ends before the repair.
    listed = shown(slurm_cluster)
    assert {job for job in overlapping if listed[job].state != "PENDING"} == set(overlapping[:3])
    assert set(listed[short].processors) == {"node4"}
    # All nodes are taken now, so that Slurm does not start what the user releases before we see it.
    slurm_cluster.scontrol("release", by_user)
    elements = [f"{array}_{number}" for number in range(1, 6)]
    run = [*overlapping, short, by_user, before, after, failing, later, *elements]
    daemon.until(lambda: diary.ended() == Counter(run), 60, "all that may run has run")
    daemon.until(lambda: {e.job_id for e in daemon.events(ev.JobEnded)} == set(run))
    assert daemon.stop() == 0

    assert diary.begun() == Counter(run)
    assert_no_processor_was_given_twice(slurm_cluster, diary)
    assert_every_start_was_decided(daemon, slurm_cluster, run)
    ran, listed = diary.executions(), shown(slurm_cluster)
    assert not any("node4" in listed[job].processors for job in overlapping)
    assert ran[after].begin >= ran[before].end
    assert ran[later].begin >= int(begin)
    assert never not in ran and listed[never].state == "PENDING"
    spans = [(ran[element].begin, ran[element].end) for element in elements]
    assert all(sum(b <= at < e for b, e in spans) <= 2 for at, _ in spans)
    outcomes = {event.job_id: event.outcome for event in daemon.events(ev.JobEnded)}
    assert outcomes == {job: "failed" if job == failing else "completed" for job in run}
    daemon.assert_replays()


# ---------------------------------------------------------------------- what can never run


def test_explain_says_why_a_job_can_never_run_and_a_task_stays_on_one_node(
    slurm_cluster: Any, site: Callable[..., Daemon]
) -> None:
    diary = Diary(slurm_cluster)
    slurm_cluster.scontrol("update", "NodeName=node4", "State=DRAIN", "Reason=repair")
    daemon = site(slurm_cluster, plugins=["fcfs", "first-fit"])
    daemon.start()
    # 22.05 lets nobody hold a job that is larger than its partition; 24.11 takes it only held.
    held = slurm_cluster.release is SLURM24
    never = slurm_cluster.submit(100_000, hold=held, administrator=False)
    if held:
        slurm_cluster.run("scontrol", "release", never, check=False)
    narrow = slurm_cluster.submit(5, nodes=5, script=diary.script(1))
    later = Wanted(16, 1, 5).submit(slurm_cluster, diary)
    # Three processors of one task, on nodes of four: Slurm would make two tasks of it on two nodes.
    threaded = [slurm_cluster.submit(cpus_per_task=3, script=diary.script(1)) for _ in range(3)]
    daemon.until(lambda: diary.ended() == Counter(threaded), what="the jobs behind them run")
    for job in threaded:
        fields = shown(slurm_cluster)[job].fields
        assert (fields["NumNodes"], fields["NumCPUs"], fields["NumTasks"]) == ("1", "3", "1")
    assert "it needs 100000 processors, and pool 'batch' has 16" in daemon.command("explain", never).stdout
    assert "it needs 5 nodes, and pool 'batch' has 4" in daemon.command("explain", narrow).stdout
    assert "1 of the 4 nodes of pool 'batch' are down" in daemon.command("explain", later).stdout
    assert daemon.stop() == 0


def test_what_slurm_refuses_for_ever_is_found_out_once(
    slurm_factory: Callable[..., Any], site: Callable[..., Daemon]
) -> None:
    """Without managed memory Slurm compares what a job asks for with each node's configuration."""
    one_socket_of_4 = "node3:Sockets=1 CoresPerSocket=4 ThreadsPerCore=1"
    different = ("--node", "node2:TmpDisk=5000", "--node", one_socket_of_4)
    cluster = slurm_factory(*different, nodes=3)
    assert "MEMORY" not in cluster.scontrol("show", "config").split("SelectTypeParameters")[1].splitlines()[0]
    diary = Diary(cluster)
    daemon = site(cluster, plugins=["fcfs", "first-fit"])
    daemon.start()
    never = {
        cluster.submit(mem="100000M"): "no node of pool 'batch' has 100000 MiB of memory",
        cluster.submit(mem_per_cpu="100000M"): "no node of pool 'batch' has 100000 MiB of memory",
        cluster.submit(tmp="9000M"): "no node of pool 'batch' has 9000 MiB of disk",
        # What headway does not know of is tried once on each kind of node.
        cluster.submit(threads_per_core=2): "Slurm says that its nodes can never run it (BadConstraints)",
    }
    disk = cluster.submit(tmp="3000M", script=diary.script(1))
    one_socket = cluster.submit(extra_node_info="1:4:1", script=diary.script(1))
    ordinary = [cluster.submit(4, script=diary.script(1)) for _ in range(4)]
    daemon.until(lambda: diary.ended() == Counter([disk, one_socket, *ordinary]), what="the others run")
    daemon.until(lambda: len(_left_out(daemon)) == len(never), what="each is told")
    for job, reason in never.items():
        explained = daemon.command("explain", job).stdout
        assert reason in explained
        assert "MiB" in reason or f"Its last start failed: {reason}." in explained
    listed = shown(cluster)
    assert listed[disk].fields["NodeList"] == "node2"
    assert listed[one_socket].fields["NodeList"] == "node3"
    assert daemon.stop() == 0
    assert len(_left_out(daemon)) == len(never), "once"
    assert not daemon.said("a job started that headway did not start")
    tried = Counter(start.job_id for _, start in daemon.starts())
    assert all(tried[job] == (0 if "MiB" in reason else 3) for job, reason in never.items()), tried
    assert tried[one_socket] <= 3 and all(tried[job] == 1 for job in [disk, *ordinary])
    daemon.assert_replays()


def _left_out(daemon: Daemon) -> list[str]:
    """The jobs that were told to be impossible, one by one or several with one line."""
    told = [str(line["message"]) for line in daemon.said("notice")]
    pattern = r"(?:job (\S+) is|\d+ jobs \((.*)\) are) left out of the queue: it can never"
    found = [re.match(pattern, one) for one in told]
    return [name for match in found if match for name in (match[1] or match[2]).split(", ")]
