"""Rounds in which one of two daemons is killed, stopped, or cut off, at random times and at random points."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
from caught_commands import Trap
from fence_witness import Verdict, Witness, epoch_of
from live_daemon import Daemon
from standby_pair import PATIENCE, Pair, knows_the_leader
from waiting import HANG, bound, until

#: Of a write that is stopped on its way: words in it.
_ON_ITS_WAY = ("headway:pin=", "headway:release;", "headway:")
#: A daemon that was killed, ended in order, or found that it does not lead any more (also where the fence
#: said so, or where its journal is another's for a moment).
_EXITS = {-signal.SIGKILL, 0, 1}
#: What the log says of what a daemon is; it leads when its run has begun.
_ROLES = ("standing by", "headway leads", "started")
_ALLOCATED = re.compile(r"\[(\S+)\] (?:sched: Allocate|\S*backfill: (?:_start_job: )?Started) JobId=([0-9]+)")
_TERMINATED = re.compile(r"\[(\S+)\] Terminate signal")
#: slurmctld that is told to end does not launch what it allocated in its last moment. After its restart it
#: takes such a job to run until it asks the node, minutes later.
_LAST_MOMENT, _LAUNCH = 1.0, 20.0


@dataclass
class TakeOver:
    """One take-over: seconds from what happened to the leader."""

    #: Until the stand-by has the lease; until Slurm has heard its epoch; until its run has begun; until Slurm
    #: has taken its first write; None: it wrote nothing in this round.
    leads: float
    heard: float
    began: float
    wrote: float | None
    #: slurmctld was restarted meanwhile.
    restarted: bool
    load: float
    #: What it may take on this machine at present.
    most: float

    def __str__(self) -> str:
        wrote = "-" if self.wrote is None else f"{self.wrote:.2f}"
        restarted = ", slurmctld restarted" if self.restarted else ""
        return (
            f"{self.began:.2f} s (lease {self.leads:.2f}, epoch heard {self.heard:.2f}, "
            f"first write {wrote}{restarted})"
        )


@dataclass
class Rounds:
    """One round after the other."""

    two: Pair
    rng: random.Random
    witness: Witness
    trap: Trap
    take_overs: list[TakeOver] = field(default_factory=list)
    #: What became of the commands that were stopped on their way until another daemon had the lease.
    caught: Counter[str] = field(default_factory=Counter)
    what: Counter[str] = field(default_factory=Counter)
    #: Jobs that Slurm allocated and never launched, because it was ended just then.
    unlaunched: list[str] = field(default_factory=list)
    #: What happened to the leader in this round, and when; None: nothing did.
    _struck: tuple[Daemon, float] | None = None
    _restarts: str = ""
    _restarted: bool = False

    def kinds(self) -> Sequence[Callable[[], None]]:
        return (
            self.kill, self.kill_at_a_decision, self.kill_a_daemon_whose_command_is_on_its_way, self.stop,
            self.pause, self.pause_at_a_decision, self.pause_with_a_command, self.pause_with_a_command,
            self.pause_the_stand_by, self.both, self.cut,
        )  # fmt: skip

    # -- who is what

    def leader(self) -> Daemon:
        """The daemon that led last, and runs; waits for it."""
        found: list[Daemon] = []

        def leads() -> bool:
            self.revive()
            found[:] = [daemon for daemon in self.two.daemons if _leads(daemon)]
            return len(found) == 1

        until(leads, "one of them leads", 3 * HANG, said=self.two.said)
        return found[0]

    def settled(self) -> Daemon:
        """The same, once the other one follows it."""
        found: list[Daemon] = []

        def follows() -> bool:
            found[:] = [self.leader()]
            other = self.other(found[0])
            told = [entry["event"] for entry in other.log() if entry["event"] in _ROLES]
            return told[-1] == "standing by" and knows_the_leader(other)

        until(follows, "the other one follows", 3 * HANG, said=self.two.said)
        return found[0]

    def revive(self) -> None:
        """As systemd does."""
        for daemon in self.two.daemons:
            code = daemon.process.poll() if daemon.process is not None else 0
            if code is not None:
                assert code in _EXITS, (code, self.two.said())
                daemon.process = None
                self.two.start(daemon)

    def other(self, daemon: Daemon) -> Daemon:
        return next(one for one in self.two.daemons if one is not daemon)

    # -- what happens

    def round(self) -> str:
        """What happened, in a line."""
        leader = self.settled()
        self.submit()
        time.sleep(self.rng.uniform(0.0, 2.0))
        self._struck, self._restarted = None, False
        self._restarts = self.rng.choice(["", "", "", "meanwhile", "after"])
        what = self.rng.choice(self.kinds())
        self.what[what.__name__] += 1
        runs = len(self.other(leader).said("started"))
        what()
        if self._restarts:
            self.restart()
        now = self.leader()
        said = what.__name__
        begins = self.two.submit()
        self.two.begins(begins, 3 * HANG)
        verdict = self.witness.look()
        assert not verdict.wrong, verdict.wrong
        if now is not leader and self._struck is not None and len(now.said("started")) > runs:
            took = self.taken_over(now, self._struck[1], verdict)
            self.take_overs.append(took)
            said += f", take-over {took}"
        return f"{said}, load {os.getloadavg()[0]:.1f}, {len(verdict.late)} late writes so far"

    def submit(self) -> None:
        for _ in range(3):
            self.two.submit(self.rng.choice([1, 2, 4]), round(self.rng.uniform(0.5, 3.0), 1))

    def restart(self) -> None:
        self._restarts, self._restarted = "", True
        self.what["slurmctld"] += 1
        self.two.restart_slurmctld()
        self.forget_unlaunched()

    def forget_unlaunched(self) -> None:
        """As an administrator does who finds a job that runs nowhere."""
        log = slurmctld_log(self.two)
        ended = datetime.fromisoformat(_TERMINATED.findall(log)[-1]).timestamp()
        then = {
            job for at, job in _ALLOCATED.findall(log)
            if abs(datetime.fromisoformat(at).timestamp() - ended) < _LAST_MOMENT
        }  # fmt: skip
        suspects = then & set(self.two.jobs)
        end = time.monotonic() + _LAUNCH
        while (waits := suspects - self.two.diary.begun().keys()) and time.monotonic() < end:
            time.sleep(0.2)
        for job in waits:
            self.two.cluster.run("scancel", job)
            self.two.jobs.remove(job)
            self.unlaunched.append(job)

    def meanwhile(self) -> None:
        """Something struck the leader just now."""
        if self._restarts == "meanwhile":
            self.restart()

    def strike(self, leader: Daemon, action: Callable[[], object]) -> None:
        """The leader is gone from now on."""
        self._struck = (leader, time.time())
        action()

    def taken_over(self, by: Daemon, since: float, verdict: Verdict) -> TakeOver:
        led = [_when(entry) for entry in by.said("headway leads")]
        began = [_when(entry) for entry in by.said("started")]
        leads = next(at for at in led if at > since)
        heard, wrote = next(
            (at, verdict.wrote.get(epoch)) for epoch, at in sorted(verdict.heard.items()) if at > leads - 0.05
        )
        return TakeOver(
            leads - since, heard - since, next(at for at in began if at > leads) - since,
            None if wrote is None else wrote - since, self._restarted, os.getloadavg()[0], bound(10.0),
        )  # fmt: skip

    def gone(self, leader: Daemon, action: Callable[[], object]) -> None:
        """The leader ends, and the other one leads."""
        other = self.other(leader)
        runs = len(other.said("started"))
        self.strike(leader, action)
        self.meanwhile()
        other.until(lambda: len(other.said("started")) > runs, what="the stand-by leads")

    def kill(self) -> None:
        leader = self.leader()
        self.gone(leader, leader.kill)

    def stop(self) -> None:
        leader = self.leader()
        self.gone(leader, leader.stop)

    def kill_at_a_decision(self) -> None:
        leader = self.decides()
        self.gone(leader, leader.kill)

    def kill_a_daemon_whose_command_is_on_its_way(self) -> None:
        """The command goes on when the other one leads."""
        leader = self.leader()
        number, words = self.catches(leader)
        self.gone(leader, leader.kill)
        self.trap.let_go(number)
        self.came(number, words)

    def pause(self) -> None:
        leader = self.leader()
        self.paused(leader)

    def pause_at_a_decision(self) -> None:
        self.paused(self.decides())

    def pause_with_a_command(self) -> None:
        """As a machine that stands still: the daemon, and a command on its way."""
        leader = self.leader()
        self.paused(leader, self.catches(leader))

    def decides(self) -> Daemon:
        """The leader, which has decided something a moment ago."""
        leader = self.leader()
        decided = len(leader.said("decided"))
        self.submit()
        until(lambda: len(leader.said("decided")) > decided, "it decides", pause=0.005)
        time.sleep(self.rng.choice([0.0, self.rng.uniform(0.0, 0.2)]))
        return leader

    def catches(self, leader: Daemon) -> tuple[int, str]:
        """One of its commands, stopped; and so is the daemon."""
        assert leader.process is not None
        self.trap.set(leader.process.pid, self.rng.choice(_ON_ITS_WAY))
        self.submit()
        return self.trap.caught()

    def paused(self, leader: Daemon, command: tuple[int, str] | None = None) -> None:
        """1 to 60 seconds: a leader that another has replaced meanwhile ends when it goes on."""
        seconds = self.rng.choice([self.rng.uniform(1, 8), self.rng.uniform(8, 60)])
        other = self.other(leader)
        before = len(other.said("headway leads"))
        self.strike(leader, lambda: leader.send(signal.SIGSTOP))
        began = time.time()
        if seconds > PATIENCE:
            self.meanwhile()
        until(lambda: time.time() > began + seconds, "the pause is over", seconds + HANG)
        is_replaced = len(other.said("headway leads")) > before
        steps = [lambda: leader.send(signal.SIGCONT)]
        if command is not None:
            steps.append(lambda: self.trap.let_go(command[0]))
            self.rng.shuffle(steps)
        for step in steps:
            step()
            time.sleep(self.rng.choice([0.0, 0.5]))
        resumed = time.time()
        if is_replaced:
            assert leader.ended(HANG) in _EXITS - {0}
            other.until(lambda: len(other.said("started")) >= before, what="the stand-by leads")
            self.wrote_nothing(leader, other, resumed)
            if command is not None:
                self.came(*command)

    def came(self, number: int, words: str) -> None:
        """A command that was on its way when its daemon was replaced. That one which is taken came before
        Slurm had heard the new epoch the witness sees."""
        code = self.trap.came(number, HANG)
        if code is None:
            self.caught["ended by its daemon"] += 1
            return
        verdict = self.witness.look()
        epoch = epoch_of(words.rpartition("AdminComment=")[2].split(" ")[0])
        assert epoch, words
        if any(write.epoch == epoch for write in verdict.late):
            assert code, words
            self.caught["refused"] += 1
        else:
            self.caught["before the new epoch was heard"] += 1

    def wrote_nothing(self, deposed: Daemon, by: Daemon, since: float) -> None:
        """By its own log no command of the deposed daemon was taken that began after it went on and after
        Slurm had heard the next epoch."""
        by.until(lambda: self.witness.look().highest >= by.said("headway leads")[-1]["epoch"])
        verdict = self.witness.verdict
        since = max(since, verdict.heard[verdict.highest])
        done = [
            entry for entry in deposed.said("command")
            if entry["status"] == 0 and _when(entry) - (entry["seconds"] or 0.0) > since
        ]  # fmt: skip
        assert not done, done

    def pause_the_stand_by(self) -> None:
        standby = self.other(self.leader())
        standby.send(signal.SIGSTOP)
        time.sleep(self.rng.uniform(1.0, 10.0))
        standby.send(signal.SIGCONT)

    def both(self) -> None:
        for daemon in self.two.daemons:
            daemon.kill()

    def cut(self) -> None:
        """The connections between the daemons, or of both to their database."""
        url = self.two.daemons[0].config["journal"]
        if "://" not in url:
            with self.two.cut_off():
                # Both may lead meanwhile, as far as they know.
                for _ in range(3):
                    time.sleep(self.rng.uniform(0.2, 4.0))
                    self.submit()
            return
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name like 'headway %'"
            )


def slurmctld_log(two: Pair) -> str:
    return str((two.cluster.root / "log" / "slurmctld.log").read_text())


def allocations(two: Pair) -> Counter[str]:
    """How often Slurm started each job, by its log."""
    return Counter(job for _, job in _ALLOCATED.findall(slurmctld_log(two)))


def _leads(daemon: Daemon) -> bool:
    told = [entry["event"] for entry in daemon.log() if entry["event"] in _ROLES]
    return (
        bool(told) and told[-1] == "started" and daemon.process is not None and daemon.process.poll() is None
    )


def _when(entry: dict[str, str]) -> float:
    return datetime.fromisoformat(entry["timestamp"]).timestamp()
