"""What must hold after a torture run, from the jobs' own stamps, the system's records and the journal.

What broke because the system itself was killed is told apart, by evidence about the very run or command: the
system's own word that it requeued the job or had lost it; that the daemon of the run's node was killed under
it; or that its start, or the command, came after the server's last saved state and before the SIGKILL.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torture.history import Asked, History
from torture.occupation import excesses
from torture.stamps import Run
from torture.stream import Wanted
from torture.system import Records, Share, System

#: Seconds until a cancellation, or a hold, that was answered must have reached a start that headway had
#: decided by then: it looks every second or two, and all clocks are one machine's, which may be busy.
GRACE = 10.0
#: Seconds of the system's whole-second records.
ROUNDING = 1.0
#: Seconds after its beginning in which headway may not have seen that a job runs.
UNSEEN = 2.0
FORGOT = "its server was killed before it had saved that"
LOST = "it did not have it any more after its server was killed"


@dataclass(frozen=True)
class Anomaly:
    """Something that should not have happened. ``system``: its own fault, and why that is known."""

    kind: str
    key: str
    text: str
    system: str = ""

    def __str__(self) -> str:
        whose = f" [the system's: {self.system}]" if self.system else ""
        return f"{self.kind}: {self.key}: {self.text}{whose}"


class Judge:
    """Goes through all jobs of a run. ``decided``: when headway decided to start each job, by key."""

    def __init__(
        self, system: System, history: History, runs: Mapping[str, Sequence[Run]], records: Records,
        decided: Mapping[str, Sequence[float]],
    ) -> None:  # fmt: skip
        self.system, self.history, self.runs, self.records = system, history, runs, records
        self.decided = decided
        self.found: list[Anomaly] = []

    def all(self) -> list[Anomaly]:
        for job in list(self.history.wanted.values()):
            submitted = self.history.submission(job.number)
            if submitted is None:
                continue
            for element, key in enumerate(job.keys, 1):
                cancels = [
                    act
                    for act in self.history.upon(job.number, "cancel", "cancel-elements")
                    if not act.elements or (job.elements and element in act.elements)
                ]
                self._runs(job, key, submitted, cancels)
                self._requeues(job, key)
                self._holds(job, key, submitted, list(self.history.upon(job.number, "hold", "release")))
                self._decisions(key)
            self._dependency(job)
        self._occupation()
        return self.found

    def _add(self, kind: str, key: str, text: str, why: str = "") -> None:
        """``why``: how it is known that this is the system's own fault."""
        self.found.append(Anomaly(kind, key, text, why))

    # -- what the system did itself -----------------------------------------------------------------

    def _forgot(self, at: float) -> str:
        """Whether a server was killed before it had saved what happened at this moment."""
        return FORGOT if any(kill.forgets(at) for kill in self.history.kills("server")) else ""

    def _node_kills(self, run: Run) -> list[tuple[float, str]]:
        """The SIGKILLs of a node's daemon under a run, where that costs the run."""
        return self._kills_below(self._where(run) or (), run.begin, run.end)

    def _kills_below(self, nodes: Container[str], begin: float, end: float | None) -> list[tuple[float, str]]:
        found = []
        for kill in self.history.kills("node") if self.system.loses_with_node else ():
            node = kill.target.split(":")[1]
            if begin <= kill.back and (end or kill.at) >= kill.at and node in nodes:
                found.append((kill.at, f"the daemon of its node {node} was killed under it"))
        return found

    def _lost_with_node(self, key: str) -> list[str]:
        """Why it was requeued with a node's daemon, once for each kill before a requeue: under a run by its
        stamps, or by the records, as it had been started but could not write that down yet."""
        kills = {one for run in self.runs.get(key, ()) for one in self._node_kills(run)}
        for share in self.records.shares:
            if share.key == key:
                kills.update(self._kills_below([share.node], share.begin - ROUNDING, share.end + ROUNDING))
        last = max(self.records.requeues.get(key, ()), default=0.0)
        return [why for at, why in sorted(kills) if at <= last + ROUNDING]

    def _disowning(self, run: Run) -> list[tuple[float, str]]:
        """From when on the system did not know any more that a run was under way, and why."""
        found = [one for one in self.records.own.get(run.key, ()) if one[0] >= run.begin - ROUNDING]
        kills = [kill for kill in self.history.kills("server") if kill.forgets(run.begin)]
        return sorted([*found, *self._node_kills(run), *((kill.at, FORGOT) for kill in kills)])

    def _disowned(self, run: Run, at: float) -> str:
        """Why the system did not know at this moment that a run was under way; "" if it knew."""
        return next((why for moment, why in self._disowning(run) if moment <= at + ROUNDING), "")

    def _forgot_requeue(self, job: Wanted, run: Run) -> str:
        """Why it did not begin again after a requeue that ended it; "" if the system knew of that."""
        for act in self.history.upon(job.number, "requeue"):
            ended = run.end is not None and act.asked - ROUNDING <= run.end <= act.answered + GRACE
            if act.accepted and ended:
                return self._forgot(act.answered)
        return ""

    def _requeued_meanwhile(self, key: str, act: Asked) -> str:
        """Why a cancellation was lost: it hit a run that its node had lost, when the system requeued that."""
        requeues = self.records.requeues.get(key, [])
        if not any(act.asked - ROUNDING <= at <= act.answered + GRACE for at in requeues):
            return ""
        before = [run for run in self.runs.get(key, ()) if run.begin <= act.answered]
        return next((why for run in before for _, why in self._node_kills(run)), "")

    # -- how often ----------------------------------------------------------------------------------

    def _runs(self, job: Wanted, key: str, submitted: Asked, cancels: list[Asked]) -> None:
        ran = list(self.runs.get(key, ()))
        requeues = self.records.requeues.get(key, [])
        cancelled = [act for act in cancels if act.accepted is not False]
        if len(ran) > 1 + len(requeues):
            times = ", ".join(f"{run.begin:.1f}" for run in ran)
            text = f"began at {times}; requeued {len(requeues)} times"
            forgotten = [why for run in ran[:-1] if (why := self._forgot(run.begin))]
            enough = len(ran) <= 1 + len(requeues) + len(forgotten)
            self._add("ran too often", key, text, forgotten[0] if enough else "")
        for one, other in pairwise(ran):
            if one.end is not None and other.begin < one.end:
                text = f"{one.begin:.1f}-{one.end:.1f} and from {other.begin:.1f}"
                self._add("ran twice at once", key, text, self._disowned(one, other.begin))
        if not ran and submitted.accepted and not cancelled and not self._hopeless(job):
            text = f"accepted as {submitted.id}, the system says {self._state(key)}"
            self._add("never ran", key, text, LOST if key in self.records.lost else "")
        if ran and not cancelled and not job.overruns and ran[-1].how != "end":
            text = f"its last run, of {ran[-1].begin:.1f}, did not come to its end"
            why = self._disowned(ran[-1], ran[-1].end or float("inf"))
            self._add("cut short", key, text, why or self._forgot_requeue(job, ran[-1]))
        if job.overruns and ran and ran[-1].how == "end":
            self._add("outlived its limit", key, f"from {ran[-1].begin:.1f} to {ran[-1].end:.1f}")
        for act in cancelled:
            late = [run.begin for run in ran if act.accepted and run.begin > act.answered + GRACE]
            if late:
                text = f"cancelled {act.answered:.1f}, began {late}"
                why = self._forgot(act.answered) or self._requeued_meanwhile(key, act)
                self._add("ran after it was cancelled", key, text, why)

    def _requeues(self, job: Wanted, key: str) -> None:
        """It is requeued when its administrator says so, or the system itself."""
        requeues, asked = len(self.records.requeues.get(key, [])), self._heeded(job, key)
        if requeues <= asked:
            return
        text = f"requeued {requeues} times, {asked} times by its administrator"
        own = [why for _, why in self.records.own.get(key, ())] + self._lost_with_node(key)
        self._add("requeued by nobody", key, text, own[0] if requeues <= asked + len(own) else "")

    def _heeded(self, job: Wanted, key: str) -> int:
        """How often its administrator asked for a requeue and was not refused. A request that nobody answered
        counts if the system says that it did what it was asked for, where it says that."""
        told = self.records.on_request
        done, count = sorted((told or {}).get(key, ())), 0
        # What was accepted was done, so what the system says of it speaks for no other request.
        for act in sorted(self.history.upon(job.number, "requeue"), key=lambda act: not act.accepted):
            its = next((at for at in done if at >= act.asked - ROUNDING), None)
            if act.accepted or (act.accepted is None and (told is None or its is not None)):
                count += 1
                done = [at for at in done if at != its]
        return count

    def _state(self, key: str) -> str:
        return self.records.states.get(key, "nothing about it")

    def _hopeless(self, job: Wanted) -> bool:
        """Whether it depends on the success of a job that has not had any."""
        if job.after is None or not job.after_ok:
            return False
        before = self.history.wanted[job.after]
        return before.exit_code != 0 or self._hopeless(before) or not self.runs.get(before.name)

    # -- when ---------------------------------------------------------------------------------------

    def _holds(self, job: Wanted, key: str, submitted: Asked, acts: list[Asked]) -> None:
        """It does not begin while its user holds it."""
        since = submitted.answered if job.held and submitted.accepted else None
        for act in acts:
            if act.kind == "hold" and act.accepted:
                since = act.answered
            elif act.kind == "release" and since is not None and act.accepted is not False:
                early = [run.begin for run in self.runs.get(key, ()) if since + GRACE < run.begin < act.asked]
                if early:
                    text = f"held {since:.1f}, began {early}"
                    self._add("began while it was held", key, text, self._forgot(since))
                since = None

    def _dependency(self, job: Wanted) -> None:
        if job.after is None or not self.runs.get(job.name):
            return
        submitted, before = self.history.submission(job.number), self.history.submission(job.after)
        if before is None or not before.accepted or submitted is None:
            return
        begin = self.runs[job.name][0].begin
        name = self.history.wanted[job.after].name
        ran = list(self.runs.get(name, ()))
        for at, run in enumerate(ran):
            # A run that was ended by force says no end; the next one's beginning bounds it.
            end = run.end if run.end is not None or at + 1 == len(ran) else ran[at + 1].begin
            if run.begin < begin and (end is None or end > begin):
                text = f"began {begin:.1f} before {name} was over ({end})"
                # An earlier run was its end, or nobody knew of this one.
                why = next(filter(None, (self._disowned(one, begin) for one in ran[: at + 1])), "")
                self._add("began before what it depends on was over", job.name, text, why)
        if job.after_ok and self._hopeless(job):
            # What the system forgot cannot have failed; its number may be another job's by then.
            why = LOST if name in self.records.lost else ""
            self._add("began although what it depends on failed", job.name, f"{name} did not succeed", why)

    def _resumed(self, key: str, begun: float, again: float) -> str:
        """Why the system started it again by itself: somebody requeued it as soon as it ran."""
        job = next((job for job in self.history.wanted.values() if job.name == key), None)
        for act in self.history.upon(job.number, "requeue") if self.system.resumes and job else ():
            soon = begun - ROUNDING <= act.asked <= begun + UNSEEN
            if act.accepted and soon and act.asked <= again + ROUNDING <= act.answered + GRACE:
                return "it was requeued, to begin at once, before headway could see that it ran"
        return ""

    def _decisions(self, key: str) -> None:
        """Its n-th start comes after headway's n-th decision to start it."""
        decided = sorted(self.decided.get(key, ()))
        starts = sorted(self.records.starts.get(key, ()))
        for number, start in enumerate(starts, 1):
            before = sum(1 for at in decided if at <= start + ROUNDING)
            if before < number:
                text = f"start {number} at {start:.1f}; headway had decided {before}"
                # A start that it forgot it may repeat by itself; not one that headway never decided.
                why = next(filter(None, map(self._forgot, starts[: number - 1])), "") if before else ""
                why = why or (self._resumed(key, starts[number - 2], start) if before else "")
                self._add("started without headway", key, text, why)
                return

    # -- where --------------------------------------------------------------------------------------

    def _occupation(self) -> None:
        """No node has more to do than it has processors.

        It is not the system's fault if that is so by what the system knew: there a run counts until it lost
        sight of it, and a job of which it did so once by its own stamps instead of the records.
        """
        stamped, known, confused = [], [], set()
        for key, ran in self.runs.items():
            for run in ran:
                end = run.end or run.begin
                lost = [moment for moment, _ in self._disowning(run)]
                if lost or self._forgot(end):
                    confused.add(key)
                for node, count in (self._where(run) or {}).items():
                    stamped.append(Share(key, node, count, run.begin, end))
                    known.append(Share(key, node, count, run.begin, min([end, *lost])))
        self._excesses("oversubscribed by the jobs' stamps", stamped, known)
        blur = self.system.blur
        recorded = [
            Share(s.key, s.node, s.processors, s.begin + blur, s.end - blur) for s in self.records.shares
        ]
        credible = [share for share in recorded if share.key not in confused]
        credible += [share for share in known if share.key in confused]
        self._excesses("oversubscribed by the system's records", recorded, credible)

    def _excesses(self, kind: str, shares: list[Share], known: list[Share]) -> None:
        mine = excesses(known, self.system.nodes)
        there = {(one.node, one.at) for one in mine}
        its = [one for one in excesses(shares, self.system.nodes) if (one.node, one.at) not in there]
        for whose, found in (("", mine), ("it had lost sight of one of them", its)):
            for one in found:
                text = f"{one.processors} processors from {one.at:.1f} on by {', '.join(one.keys)}"
                self._add(kind, one.node, text, whose)

    def _where(self, run: Run) -> dict[str, int] | None:
        """What a run had of which nodes: as it was told, else as the records say."""
        told = self.system.where(run)
        if told is not None:
            return told
        shares = [
            share for share in self.records.shares
            if share.key == run.key and share.begin - 2 <= run.begin <= share.end + 2
        ]  # fmt: skip
        # The last that had begun by then, with all its nodes.
        begin = max((share.begin for share in shares), default=0.0)
        return {share.node: share.processors for share in shares if share.begin == begin} or None
