"""Where users' requests for metajobs are served: submit, status, cancel."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.decisions import Answer
from headway.errors import UserError
from headway.events import PluginAsked
from headway.state import State
from headway_plugins.coscheduling.calls import metajob_of
from headway_plugins.coscheduling.everywhere_course import EverywhereCourse, rows
from headway_plugins.coscheduling.live_metajob import LiveMetajob
from headway_plugins.coscheduling.metajob_course import Course
from headway_plugins.coscheduling.metajob_options import MetajobOptions
from headway_plugins.coscheduling.metajob_requests import checked, read
from headway_plugins.coscheduling.metajob_status import brief, full


class Desk:
    """Takes metajobs in, tells of them, and gives them up."""

    def __init__(
        self,
        options: MetajobOptions,
        course: Course,
        lives: dict[str, LiveMetajob],
        by_job: dict[str, LiveMetajob],
        everywhere: EverywhereCourse,
    ) -> None:
        """``lives``: all metajobs by id; ``by_job``: by the jobs that wait for them."""
        self._options, self._course, self._everywhere = options, course, everywhere
        self._lives, self._by_job = lives, by_job
        #: Of the last metajob.
        self.number = 0
        #: Whether the cluster binds jobs to reservations.
        self.binds = True
        #: Whether it removes jobs that wait and jobs that run.
        self.removes = True

    def serve(self, event: PluginAsked, state: State) -> Answer:
        try:
            if event.verb == "submit":
                return self._submit(event, state)
            if event.verb == "status":
                return self._status(event, state)
            if event.verb == "cancel":
                return self._cancel(event, state)
        except UserError as error:
            return Answer("refused", str(error))
        return Answer("refused", f"expected submit, status or cancel, found {event.verb!r}")

    def _submit(self, event: PluginAsked, state: State) -> Answer:
        wanted = read(event.text)
        active = [live for live in self._lives.values() if live.kept.phase not in ("cancelled", "over")]
        mine = sum(live.kept.user == event.user for live in active)
        if not event.operator and mine >= self._options.max_metajobs:
            return Answer("refused", f"you have {mine} metajobs, {self._options.max_metajobs} are allowed")
        searching = sum(live.kept.phase in ("searching", "giving back") for live in active)
        if searching >= self._options.max_searches:
            return Answer("refused", f"{searching} metajobs are searched for; try again later")
        if wanted.everywhere and not self.removes:
            return Answer("refused", "this cluster cannot remove jobs, so no copy of a job can be removed")
        if wanted.jobs and not (self.binds or wanted.everywhere):
            return Answer("refused", "this cluster cannot bind jobs to reservations; submit without jobs")
        asked = (f"m{self.number + 1}", event.user, event.operator)
        kept = checked(
            wanted, asked, state, self._options.machines, self._options, lead=self._options.lead,
            on_loss=self._options.on_loss,
        )  # fmt: skip
        for job in kept.pools:
            if job in self._by_job:
                return Answer("refused", f"job {job} belongs to metajob {self._by_job[job].kept.id}")
        while any(metajob_of(name) == f"m{self.number + 1}" for name in state.reservations):
            # An earlier run without a journal has used it.
            self.number += 1
        self.number += 1
        kept.id = f"m{self.number}"
        kept.metajob = msgspec.structs.replace(kept.metajob, id=kept.id)
        live = self._lives[kept.id] = LiveMetajob(kept)
        for job in kept.pools:
            self._by_job[job] = live
            state.bar_queued(state.pools[kept.pools[job]])
        self._course.promises += 1
        what = "its copies wait" if kept.everywhere else "a place is looked for"
        return Answer("accepted", f"metajob {kept.id}: {what}: headway metajob status {kept.id}")

    def _named(self, event: PluginAsked) -> LiveMetajob:
        live = self._lives.get(event.text)
        if live is None or not (event.operator or live.kept.user == event.user):
            raise UserError("there is no metajob of yours with this id")
        return live

    def _status(self, event: PluginAsked, state: State) -> Answer:
        if event.text:
            live = self._named(event)
            told: Any = {**full(live), "copies": rows(live, state)}
        else:
            told = [
                brief(live) for live in self._lives.values() if event.operator or live.kept.user == event.user
            ]
        return Answer("accepted", msgspec.json.encode(told).decode())

    def _cancel(self, event: PluginAsked, state: State) -> Answer:
        live = self._named(event)
        if live.kept.phase in ("cancelled", "over"):
            return Answer("accepted", f"metajob {live.kept.id} is {live.kept.phase} already")
        if live.kept.everywhere:
            self._everywhere.give_up(live, "cancelled", f"cancelled by {event.user}")
            return Answer("accepted", f"metajob {live.kept.id}: its copies are removed: {live.kept.why}")
        running = [part.name for part in live.kept.parts if live.runs_in(part.name, state)]
        live.give_back("cancelled", f"cancelled by {event.user}")
        if running:
            live.kept.why += f"; jobs run in {', '.join(running)}, which end with their time"
        return Answer("accepted", f"metajob {live.kept.id} is given back")
