"""How jobs are started on Slurm: pinned to their nodes, then released.

A job that must leave its reservation, or that was submitted just now, is pinned with less; what Slurm refuses
is given back. The next looks confirm that a job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Outcome
from headway.model.parts import placements_of
from headway.resources import layout_is_open
from headway_adapters.polling import Launch
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.startable import Guard
from headway_adapters.slurm import reader, together, writer
from headway_adapters.slurm.batches import for_all
from headway_adapters.slurm.client import is_silence
from headway_adapters.slurm.fence import cannot_yet
from headway_adapters.slurm.handback import Handback, Pinned
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.shown_starts import ShownStarts
from headway_adapters.slurm.world import World
from headway_adapters.transport import Result

#: Starts that are pinned before they are released: each pin is a command of its own, and no start should
#: wait for the pins of a hundred other starts.
_STARTS_AT_ONCE = 16

_NO_ANSWER = "no answer; the next look will show the result"


class Starting:
    """Starts jobs. On the adapter's thread."""

    def __init__(
        self, options: SlurmOptions, world: Callable[[], World | None], guard: Guard[reader.Detail],
        overlay: Overlay[reader.Detail], commands: Commands, handback: Handback, moves: Moves,
        shown: ShownStarts, log: Any,
    ) -> None:  # fmt: skip
        self._options = options
        self._world = world
        self._guard = guard
        self._overlay = overlay
        self._commands = commands
        self._handback = handback
        self._moves = moves
        self._shown = shown
        self._log = log

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Pinned]]:
        """Pin some, release the pinned jobs among them, then the next."""
        # Of several nodes Slurm fills the first, in its own order, and leaves one processor for each of the
        # rest: what is free there when it starts the job decides. So what is planned beside it comes first,
        # and jobs whose layout is open follow in the order of the plan.
        order = sorted(range(len(starts)), key=lambda index: self._layout_is_open(starts[index]))
        launches: dict[int, Launch[Pinned]] = {}
        for at in range(0, len(order), _STARTS_AT_ONCE):
            part = order[at : at + _STARTS_AT_ONCE]
            found, heard = self._start_some([starts[index] for index in part])
            launches.update(zip(part, found, strict=True))
            if not heard:
                rest = Launch[Pinned](self._commands.refused(None))
                launches.update(dict.fromkeys(order[at + _STARTS_AT_ONCE :], rest))
                break
        return [launches[index] for index in range(len(starts))]

    def _layout_is_open(self, start: d.Start) -> bool:
        job = self._overlay.known(start.job_id)
        return job is None or layout_is_open(job.job.request, start.placement)

    def _start_some(self, starts: Sequence[d.Start]) -> tuple[list[Launch[Pinned]], bool]:
        """Pin all, then release the pinned jobs; and whether Slurm answered all the time."""
        launches: dict[int, Launch[Pinned]] = {}
        plans: dict[int, writer.Plan] = {}
        for index, start in enumerate(starts):
            try:
                if self._has_parts(start):
                    launches[index] = self._start_parts(start)
                else:
                    plans[index] = self._plan(start)
            except writer.Unfit as error:
                launches[index] = Launch(Outcome(False, str(error)))
        results, marked = self._pin(starts, plans)
        pinned = []
        for index, plan in plans.items():
            result = results[index]
            if result is not None and result.ok:
                pinned.append(index)
                continue
            launches[index] = Launch(self._commands.refused(result))
            if result is not None and not is_silence(result):
                self._leave_partition(starts[index], plan, marked=index in marked)
        released = for_all(self._commands, [starts[index].job_id for index in pinned], writer.release_all)
        for index in pinned:
            start, plan = starts[index], plans[index]
            launches[index] = self._launched(start, plan, released[start.job_id], marked=index in marked)
        answers = [*results.values(), *released.values()]
        heard = all(answer is not None and not is_silence(answer) for answer in answers)
        return [launches[index] for index in range(len(starts))], heard

    def _pin(
        self, starts: Sequence[d.Start], plans: dict[int, writer.Plan]
    ) -> tuple[dict[int, Result | None], set[int]]:
        """Pin jobs to their nodes; what became of each, and which of them have the pin in their comment."""
        order = list(plans)
        updated = self._commands.change([plans[index].steps[0] for index in order]) if order else []
        results: dict[int, Result | None] = dict(zip(order, updated, strict=True))
        marked = set(order)
        again = [
            index for index, result in results.items() if cannot_yet(result)
        ]  # fmt: skip
        if again:
            bare = [_without(plans[index].steps[0], "AdminComment=") for index in again]
            results.update(zip(again, self._commands.change(bare), strict=True))
            marked.difference_update(again)
        outside = [index for index in order if _refuses_reservation(plans[index], results[index])]
        if outside:
            # Better on time beside its reservation, which may be gone, than late.
            for index in outside:
                self._log.warning("a job could not enter its reservation", job=starts[index].job_id,
                                  error=self._commands.refused(results[index]).message)  # fmt: skip
            bare = [_without(plans[index].steps[0], "ReservationName=") for index in outside]
            results.update(zip(outside, self._commands.change(bare), strict=True))
        return results, marked

    def _launched(
        self, start: d.Start, plan: writer.Plan, released: Result | None, *, marked: bool
    ) -> Launch[Pinned]:
        """What became of a job that was pinned, and then released."""
        assert plan.pin is not None
        detail, home = self._overlay.detail(start.job_id), self._home(start)
        pinned = Pinned(plan.pin, marked and detail is not None and detail.comment_free, partition=home)
        if released is not None and (released.ok or is_silence(released)):
            # Unanswered is not refused: the next look tells.
            return Launch(Outcome(True, "" if released.ok else _NO_ANSWER), pinned)
        self._commands.change([writer.restore(start.job_id, plan.pin, mark=pinned.marked, partition=home)])
        return Launch(self._commands.refused(released))

    def _leave_partition(self, start: d.Start, plan: writer.Plan, *, marked: bool) -> None:
        """Slurm may refuse a pin, and put the job into the partition that was chosen (of its list, or that of
        background jobs) all the same: it may not be in it, and so cannot be changed there."""
        home, detail = self._home(start), self._overlay.detail(start.job_id)
        if plan.pin is not None and (home or plan.pin.listed) and detail is not None:
            mark = marked and detail.comment_free
            self._commands.change([writer.restore(start.job_id, plan.pin, mark=mark, partition=home)])

    def _home(self, start: d.Start) -> str:
        """The partition that a job belongs to which is started in that of background jobs; "" for others."""
        job = self._overlay.known(start.job_id)
        return job.job.pool if start.tier != "foreground" and job is not None else ""

    # ------------------------------------------------------------------ one job

    def _plan(self, start: d.Start) -> writer.Plan:
        job, detail = self._guard.startable(start)
        pool, partition = start.pool or job.job.pool, ""
        if start.tier != "foreground":
            partition = self._options.background.get(pool, "")
            if not partition:
                raise writer.Unfit(f"job {start.job_id}: no partition takes background jobs of {pool}")
        return writer.start(
            start, detail, pool, reserved=self._is_reserved(start), at_once=start.job_id in self._moves,
            partition=partition, bound=self._given_up(start, job.job.request.switches),
            shown=self._shown.of(detail),
        )  # fmt: skip

    def _is_reserved(self, start: d.Start) -> bool:
        """Whether headway keeps a reservation for this job alone."""
        seen = self._overlay.snapshot
        return seen is not None and any(each.job_id == start.job_id for each in seen.reservations.values())

    def _given_up(self, start: d.Start, bound: int) -> int:
        """The job's bound on switches if it starts on more than that, or 0.

        Slurm would let it wait for them: for as long as it said, from its own first attempt on.
        """
        world = self._world()
        if not bound or world is None:
            return 0
        nodes = {node for node, _ in start.placement}
        on = sum(not nodes.isdisjoint(switch.nodes) for switch in world.switches)
        return bound if on > bound else 0

    # ------------------------------------------------------------------ a heterogeneous job

    def _has_parts(self, start: d.Start) -> bool:
        detail = self._overlay.detail(start.job_id)
        return detail is not None and bool(detail.parts)

    def _start_parts(self, start: d.Start) -> Launch[Pinned]:
        """Pin all components of a heterogeneous job, then release them with one command."""
        job, detail = self._guard.startable(start)
        world, seen = self._world(), self._overlay.snapshot
        assert seen is not None
        if start.tier != "foreground":
            raise writer.Unfit(f"job {start.job_id}: a job of several parts cannot start in the background")
        if world is not None and not world.site.backfills:
            raise writer.Unfit(f"job {start.job_id}: it needs sched/backfill with bf_interval=1")
        pool = [name for name, node in seen.nodes.items() if job.job.pool in node.pools]
        placements = placements_of(job.job.request, start.placement)
        steps, pins = together.start(start, detail, placements, pool, reserved=self._is_reserved(start),
                                     shown=self._shown.of(detail))  # fmt: skip
        pinned = Pinned(pins[0], detail.comment_free, pins, detail)
        # What is asked of the leader is asked of all: so it comes first, and the release last.
        for commands in ([steps.leader], steps.others, [writer.release_all([start.job_id])]):
            results = self._commands.change(commands)
            bad = [result for result in results if result is None or not result.ok]
            if bad:
                break
        if bad and not (commands[0][1] == "release" and bad[0] is not None and is_silence(bad[0])):
            self._handback.restore_parts(start.job_id, pinned)
            return Launch(self._commands.refused(bad[0]))
        # Unanswered is not refused: the next look tells.
        return Launch(Outcome(True, _NO_ANSWER if bad else ""), pinned)


def _without(argv: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(word for word in argv if not word.startswith(key))


def _refuses_reservation(plan: writer.Plan, result: Result | None) -> bool:
    """Whether a pin may have failed because of the job's reservation."""
    reserved = plan.pin is not None and plan.pin.reserved
    return reserved and result is not None and not result.ok and not is_silence(result)
