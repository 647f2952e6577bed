"""One torture run: a stream of jobs, kills, the end of all jobs, control given back, the verdict.

1. The users submit jobs of the stream and act on them (:mod:`torture.users`) while the killer strikes
   (:mod:`torture.killer`).
2. After the last kill no more is submitted; all jobs must come to their end with headway running. Jobs
   whose dependency can never be met are cancelled by their users, as users do.
3. A few jobs more than fit are submitted, headway is stopped in good order, and control is given back as the
   operators guide says: the batch system starts what waits, and nothing of headway's may be left.
4. The verdict (:mod:`torture.verdict`), from the records of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from torture import journal, stamps
from torture.history import History
from torture.journal import Read
from torture.killer import Killer
from torture.kills import kills
from torture.stream import Act, Wanted, stream
from torture.system import Records, System
from torture.users import Users
from torture.verdict import Anomaly, Judge

#: Seconds without any change of the jobs' states after which they count as stuck: longer than Slurm's two
#: minutes after a requeue and than most of headway's pauses before it tries a failed start again.
STUCK = 420.0
#: Seconds without any change after which users look whether their releases were forgotten.
FORGOTTEN = 20.0
#: Of a brief run: the longest jobs' seconds, and the part of the pauses between kills that is left.
SHORT, HASTE = 3.0, 0.4
#: Numbers of the jobs that wait when control is given back.
TAIL = 900_000


@dataclass
class Outcome:
    """What a run showed."""

    system: str
    seed: int
    kills: int
    seconds: float
    history: History
    records: Records
    journal: Read
    runs: int
    anomalies: list[Anomaly]
    #: What headway's log said at level warning or above, and how often.
    said: dict[str, int] = field(default_factory=dict)
    mended: list[str] = field(default_factory=list)

    @property
    def headways(self) -> list[Anomaly]:
        return [one for one in self.anomalies if not one.system]


def campaign(
    system: System, seed: int, count: int, directory: Path, tell: Callable[[str], None],
    *, backlog: int = 24, brief: bool = False,
) -> Outcome:  # fmt: skip
    """Run it in ``directory``, which must be new. The system is not stopped.

    ``brief``: kills close together, short jobs, and none that takes minutes whatever headway does.
    """
    began = time.time()
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    site = directory / "site"
    site.mkdir()
    history, written = History(directory / "history.jsonl"), directory / "stamps"
    script = stamps.prepare(written)
    daemon = system.daemon(site)
    killer = Killer(system, daemon, history)
    if brief:
        jobs = stream(seed, system.shapes, system.slow, longest=SHORT)
    else:
        jobs = stream(seed, system.shapes)
    users = Users(system, jobs, history, written, script, backlog=backlog, look=1.0 if brief else 3.0)
    mended: list[str] = []
    users.start()
    try:
        planned = kills(seed, system.server_share, system.node_share, HASTE if brief else 1.0)
        for number, kill in enumerate(islice(planned, count), 1):
            killer.strike(kill)
            if note := system.mend():
                mended.append(note)
            if number % 10 == 0 or number == count:
                tell(f"{number} of {count} kills, {len(history.wanted)} jobs submitted")
            assert users.error is None, users.error
        users.enough()
        stuck = _settle(system, killer, users, history, written, mended, tell, brief)
        left = _give_back(system, killer, users, history, written, mended, tell)
    finally:
        daemon.clean_up()
    return _outcome(
        system, seed, count, began, history, written, killer, [*stuck, *left], mended, directory / "site"
    )


def _settle(
    system: System, killer: Killer, users: Users, history: History, written: Path, mended: list[str],
    tell: Callable[[str], None], brief: bool,
) -> list[Anomaly]:  # fmt: skip
    """Wait until all jobs are over; those that are stuck."""
    tell("no more kills: all jobs come to their end")
    last, since, told = None, time.monotonic(), False
    seen: dict[str, float] = {}
    while True:
        killer.watch(1.0 if brief else 3.0)
        try:
            open_ = system.unfinished()
        except OSError:
            continue
        if brief:
            system.hasten(lasting(outlived(history, written, open_), seen, time.monotonic()))
        if note := system.mend():
            mended.append(note)
        if not open_ and not users.is_alive():
            return []
        for job in _hopeless(history, written, open_):
            users.act_now(job, Act("cancel", 0.0))
        if time.monotonic() - since > FORGOTTEN:
            _remember(system, users, history, mended, open_)
        if open_ != last:
            last, since, told = open_, time.monotonic(), False
        elif not told and time.monotonic() - since > FORGOTTEN:
            told = True
            tell("still: " + "; ".join(f"{job} {state}" for job, state in list(open_.items())[:10]))
        if time.monotonic() - since > STUCK:
            break
    return _stuck(killer, history, open_)


def _remember(
    system: System, users: Users, history: History, mended: list[str], open_: dict[str, str]
) -> None:
    """Mend what the system forgot when it was killed; a user repeats a forgotten release."""
    if note := system.mend_stuck(open_):
        mended.append(note)
    for job in _released(history, open_) if system.forgets else ():
        users.act_now(job, Act("release", 0.0))


def _stuck(killer: Killer, history: History, open_: dict[str, str]) -> list[Anomaly]:
    """What headway says of jobs that do not come to their end."""
    found = []
    for job_id, state in open_.items():
        told = killer.daemon.command("explain", job_id)
        found.append(Anomaly("stuck", job_id, f"{state}; headway: {' '.join(told.stdout.split())[:600]}"))
    for job_id in open_:
        history.note(f"stuck: {job_id}")
    return found


def outlived(history: History, written: Path, open_: dict[str, str]) -> list[str]:
    """Jobs and elements that the system has still running although their last run came to its end."""
    found, ran = [], stamps.runs(written)
    for job in list(history.wanted.values()):
        mine = history.present_id(job.number)
        for key in job.keys if mine else ():
            listed = f"{mine}_{key.partition('.')[2]}" if job.elements else mine
            last = ran[key][-1] if ran.get(key) else None
            if "RUNNING" in open_.get(listed, "") and last is not None and last.end is not None:
                found += [listed] if time.time() - last.end > FORGOTTEN else []
    return found


def lasting(found: Sequence[str], seen: dict[str, float], now: float) -> list[str]:
    """Those of the jobs ``found`` that were for long enough: one that is started anew has not yet said so.

    ``seen``: when each was found first, seconds; kept up to date.
    """
    for job in seen.keys() - set(found):
        del seen[job]
    return [job for job in found if now - seen.setdefault(job, now) > FORGOTTEN]


def _hopeless(history: History, written: Path, open_: dict[str, str]) -> list[Wanted]:
    """Jobs that wait for the success of one that is over without any, or whose success the system forgot, and
    were not cancelled yet."""
    found = []
    ran = stamps.runs(written)
    for job in list(history.wanted.values()):
        before = history.wanted.get(job.after or -1)
        if history.present_id(job.number) not in open_ or before is None or not job.after_ok:
            continue
        first = history.submission(before.number)
        over = first is not None and history.present_id(before.number) not in open_
        succeeded = before.exit_code == 0 and any(
            run.how == "end" and not any(kill.forgets(run.end or 0.0) for kill in history.kills("server"))
            for run in ran.get(before.name, ())
        )
        if over and not succeeded and not list(history.about(job.number, "cancel")):
            found.append(job)
    return found


def _released(history: History, open_: dict[str, str]) -> list[Wanted]:
    """Waiting jobs that were held and released, the last not more than twice."""
    found = []
    for job in list(history.wanted.values()):
        mine, said = history.present_id(job.number), list(history.about(job.number, "release"))
        if "Held" in open_.get(mine, "") and 0 < len(said) < 3:
            found.append(job)
    return found


def _give_back(
    system: System, killer: Killer, users: Users, history: History, written: Path, mended: list[str],
    tell: Callable[[str], None],
) -> list[Anomaly]:  # fmt: skip
    tell("headway is stopped and control given back while jobs wait")
    shape = max(system.shapes, key=lambda one: one.chunks * one.share)
    for number in range(TAIL, TAIL + 4):
        users.submit(Wanted(number, number % 2, shape.chunks, shape.share, shape.spread, 3.0))
    end = time.monotonic() + STUCK
    while not stamps.began(written, f"t{TAIL}") and time.monotonic() < end:
        killer.watch(0.5)
        # Their numbers may be those of forgotten jobs that still run.
        if note := system.mend():
            mended.append(note)
    found = []
    if (code := killer.stop()) != 0:
        found.append(Anomaly("stop", "headway", f"exit code {code}"))
    done = system.give_back(killer.daemon)
    if done.returncode != 0:
        found.append(
            Anomaly("give-back", "headway", f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        )
    end = time.monotonic() + STUCK
    while (open_ := system.unfinished()) and time.monotonic() < end:
        if note := system.mend(managed=False):
            mended.append(note)
        time.sleep(2.0)
    found += [Anomaly("stuck after give-back", job, state) for job, state in open_.items()]
    return found + [Anomaly("left after give-back", "headway", what) for what in system.left_over()]


def _outcome(
    system: System, seed: int, count: int, began: float, history: History, written: Path, killer: Killer,
    anomalies: list[Anomaly], mended: list[str], site: Path,
) -> Outcome:  # fmt: skip
    runs = stamps.runs(written)
    records = system.records(history, runs)
    read = journal.read(Path(killer.daemon.config["journal"]), history)
    # What the system started after control was given back is not headway's to decide, as often as it takes.
    tail = [f"t{number}" for number in range(TAIL, TAIL + 4)]
    decided = {**read.decided, **{key: [0.0] * len(records.starts.get(key, ())) for key in tail}}
    anomalies += Judge(system, history, runs, records, decided).all()
    anomalies += [Anomaly("journal", "headway", text) for text in read.faults]
    anomalies += [Anomaly("ended by itself", "headway", text) for text in killer.unexplained()]
    said: dict[str, int] = {}
    for entry in killer.daemon.log():
        if entry["level"] not in ("debug", "info"):
            said[entry["event"]] = said.get(entry["event"], 0) + 1
    if "Traceback" in killer.daemon.log_path.read_text():
        anomalies.append(Anomaly("traceback", "headway", str(killer.daemon.log_path)))
    return Outcome(
        system.name, seed, count, time.time() - began, history, records, read,
        sum(map(len, runs.values())), anomalies, said, mended,
    )  # fmt: skip
