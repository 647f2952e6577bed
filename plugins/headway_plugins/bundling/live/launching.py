"""How the processes of a bundle are launched and stopped, as their workers tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway_plugins.bundling.live.bundle import PAUSE, Bundle
from headway_plugins.bundling.live.messages import Launch, Orders, Report
from headway_plugins.bundling.live.state import Subjob
from headway_plugins.bundling.model import Interval
from headway_plugins.bundling.planning import plan
from headway_plugins.bundling.processes import redistribute, spread
from headway_plugins.bundling.slots import Slots


class Launching(Bundle):
    """A bundle whose processes are launched and stopped."""

    def report(self, now: float, report: Report) -> None:
        """A worker said how it is."""
        key = report.job, report.node
        self._reports[key] = report
        self._heard[key] = now
        subjob = self._of(report.job)
        if subjob is None:
            return
        subjob.placement = report.placement
        before = self._lives.setdefault(key, report.life)
        if before != report.life:
            self._lives[key] = report.life
            if subjob.number in self.state.members and not self.state.halted:
                self._lose(now, f"the worker of subjob {subjob.number} on {report.node} began again")

    def orders(self, job: str, node: str) -> Orders:
        """What a worker is to do."""
        state = self.state
        subjob = self._of(job)
        if subjob is None and any(one.state == "asked" for one in state.subjobs):
            # It started before its number was known.
            return Orders(Launch(state.launch))
        if subjob is None or subjob.state in ("leaving", "ended"):
            return Orders(Launch(state.launch), leave=0)
        if state.status in ("ending", "done"):
            code = state.exit_code or 0
            return Orders(Launch(state.launch), leave=code if subjob.number == 0 else 0)
        return Orders(self._launch_on(subjob, node), state.signals, state.signal)

    def _launch_on(self, subjob: Subjob, node: str) -> Launch:
        state = self.state
        if state.halted or subjob.number not in state.members:
            return Launch(state.launch)
        hosts: dict[str, int] = {}
        here: list[tuple[int, int]] = []
        for key, processes in state.layout.items():
            number, host, index = key.split("/")
            if processes:
                hosts[host] = hosts.get(host, 0) + len(processes)
            if int(number) == subjob.number and host == node:
                here += [(process - 1, int(index)) for process in processes]
        if self.spec.launch == "once":
            first = next(iter(state.layout), "")
            here = [(0, 0)] if first == f"{subjob.number}/{node}/0" else []
        variables = {
            "HEADWAY_BUNDLE": self.spec.id,
            "HEADWAY_PROCESSES": str(self.spec.processors),
            "HEADWAY_RESTARTS": str(state.executions - 1),
            "HEADWAY_NODE": node,
            "HEADWAY_IMAGE": self.image,
        }
        return Launch(state.launch, tuple(sorted(here)), variables, tuple(hosts.items()))

    def _missing_workers(self, now: float) -> None:
        """Subjobs whose workers are all there, and such that are silent."""
        for subjob in self.state.subjobs:
            if subjob.state not in ("started", "ready"):
                continue
            since = max(subjob.started or now, self._began or now)
            keys = [(subjob.job, node) for node, _ in subjob.placement]
            heard = [self._heard.get(key) for key in keys]
            if any(self._reports[key].leaving for key in keys if key in self._reports):
                subjob.state = "leaving"
                self._cancelled.add(subjob.number)
                if subjob.number in self.state.members:
                    self._lose(now, f"the batch system ends subjob {subjob.number}")
            elif subjob.state == "started":
                if keys and None not in heard:
                    subjob.state = "ready"
                elif now > since + self.spec.silence:
                    self._note(
                        now, f"the workers of subjob {subjob.number} do not report; the subjob is given up"
                    )
                    self._cancel(subjob.number)
                    self._later(now)
            elif any(now > max(since, time or since) + self.spec.silence for time in heard):
                self._note(now, f"a worker of subjob {subjob.number} is silent; the subjob is given up")
                member = subjob.number in self.state.members
                self._cancel(subjob.number)
                if member:
                    self._lose(now, f"a worker of subjob {subjob.number} is silent")

    def _begin_on(self, now: float, ready: list[int]) -> None:
        """Subjobs are there: the application runs on them, if they suffice."""
        if self._suffices(ready):
            self._launch(now, ready)
            return
        self._note(now, "the processors that started do not suffice; they are given back")
        for number in ready:
            self._cancel(number)
        self._later(now)

    def _launch(self, now: float, numbers: list[int]) -> None:
        """Begin, or go on from the last checkpoint, on these subjobs."""
        self.state.layout = {}
        self._place(numbers)
        self._start(now, numbers)
        self._follow(now, self.state.saved)

    def _place(self, numbers: Sequence[int]) -> None:
        """The layout on these subjobs: the present layout with as few changes as possible."""
        state = self.state
        keys = [key for number in numbers for key in state.subjob(number).keys][: self.model.processors]
        old = {key: held for key, held in state.layout.items() if key in set(keys)}
        if not old:
            state.layout = dict(spread(self.model.processors, keys))
            return
        leaving = [key for key in state.layout if key not in old]
        joining = [key for key in keys if key not in state.layout]
        state.layout, _ = redistribute(state.layout, joining, leaving)

    def _start(self, now: float, members: list[int]) -> None:
        state = self.state
        state.members = list(members)
        state.launch += 1
        state.halted = False
        state.signals, state.signal = 0, ""
        state.executions += 1
        state.began = now
        self._failed, self._pause = None, PAUSE
        state.first_start = state.first_start if state.first_start is not None else now

    def _halting(self, now: float, slots: Slots | None) -> None:
        """Wait until nothing runs any more; then go on where that is possible."""
        state = self.state
        if not self._stopped():
            return
        lost = [one for one in self._members() if one.state == "leaving" and one.job]
        if lost:
            # Not before the batch system says that it has ended.
            return
        first = state.placeholder
        usable = [one for one in state.subjobs if one.state == "ready"]
        state.members, state.layout, state.intervals = [], {}, []
        if first is not None and first.state == "ready":
            self._launch(now, [0])
            for subjob in usable:
                if subjob.number:
                    self._cancel(subjob.number)
            return
        state.status = "waiting"
        if usable:
            self._begin_on(now, [subjob.number for subjob in usable])

    def _stopped(self) -> bool:
        """Whether nothing of the application runs any more on subjobs that are there."""
        return self._all(lambda report: report.launch == self.state.launch and not report.live)

    def _launched(self) -> bool:
        """Whether all of it runs."""
        return self._all(lambda report: report.launch == self.state.launch)

    def _all(self, holds: Callable[[Report], bool]) -> bool:
        """Whether something holds for the reports of all workers of members."""
        for subjob in self._members():
            if subjob.state not in ("started", "ready"):
                continue
            for node, _ in subjob.placement:
                report = self._reports.get((subjob.job, node))
                if report is None or not holds(report):
                    return False
        return True

    def _follow(self, now: float, done: float) -> None:
        """Plan what is ahead of what runs now."""
        state = self.state
        members = [one.member for one in self._members()]
        model = self.model._replace(omax=self._bears(state.members))
        ahead: list[Interval] | None = plan(model, now, done, members)
        if ahead is None:
            end = min(member.end for member in members)
            leave = max(now, end - self.model.migration)
            q = min(self.model.processors, sum(member.processors for member in members))
            ahead = [Interval(now, leave, q), Interval(leave, end, 0, True)]
        state.base, state.intervals, state.status = done, ahead, "running"
