"""Where the parts of an experiment run: in this process, or in several on this machine.

A task that fails does not end the others, and a process that is killed costs nothing but time: what ran in it
is run again, alone, so that a task that kills its process is found and the others are not blamed.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from headway.errors import Failure, HeadwayError
from headway.experiment.campaign import Campaign, Key, Row, Task, tasks_of


@dataclass(frozen=True)
class Failed:
    """A task that gave no rows."""

    #: Of the rows that are missing.
    keys: tuple[Key, ...]
    error: Exception
    #: The traceback, for a reader that looks for the reason; "" if the error says all.
    trace: str = ""

    @property
    def place(self) -> str:
        """Which workload it was, for a person."""
        scenario, x, _, seed = self.keys[0]
        return f"{scenario}, {x:g}, seed {seed}"

    @property
    def message(self) -> str:
        """What went wrong, with what is known of where."""
        kind = "" if isinstance(self.error, HeadwayError) else f"{type(self.error).__name__}: "
        notes = "".join(f" ({note})" for note in getattr(self.error, "__notes__", ()))
        return f"{kind}{self.error}{notes}"


#: What became of a task.
Outcome = list[Row] | Failed

#: Runs tasks: yields the place of each in the sequence and what became of it, whichever ends first.
Runner = Callable[[Sequence[Task]], Iterator[tuple[int, Outcome]]]


def carried_out(task: Task) -> Outcome:
    """Run a task in this process."""
    try:
        return task.run(*task.arguments)
    except Exception as error:  # one failed run does not end a campaign
        known = isinstance(error, HeadwayError)
        return Failed(task.keys, _portable(error), "" if known else traceback.format_exc())


def _portable(error: Exception) -> Exception:
    """The error, or one with its words if it cannot go to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does there
        return Failure(f"{type(error).__name__}: {error}")
    return error


def here(workers: int = 1) -> Runner:
    """Runs tasks in this process, or in so many of this machine."""

    def run(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        if workers <= 1:
            for at, task in enumerate(tasks):
                yield at, carried_out(task)
            return
        waiting = deque(range(len(tasks)))
        while waiting:
            suspects = yield from _together(tasks, waiting, workers)
            for at in suspects:
                yield at, _alone(tasks[at])

    return run


def _together(
    tasks: Sequence[Task], waiting: deque[int], workers: int
) -> Generator[tuple[int, Outcome], None, list[int]]:
    """Run the waiting tasks until none is left or a process dies; answers the tasks that ran at that
    moment."""
    running: dict[Future[Outcome], int] = {}
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(workers, len(waiting)), initializer=_ignore_interrupts)
    finished = False
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                try:
                    future = pool.submit(carried_out, tasks[waiting[0]])
                except BrokenProcessPool:
                    if not running:
                        return []
                    break
                running[future] = waiting.popleft()
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                if not isinstance(future.exception(), BrokenProcessPool):
                    yield running.pop(future), future.result()
            if ended & running.keys():
                wait(running)
                for future in [one for one in running if one.exception() is None]:
                    yield running.pop(future), future.result()
                return sorted(running.values())
        finished = True
        return []
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        if not finished:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()


def _alone(task: Task) -> Outcome:
    """Run a task in a process of its own."""
    with ProcessPoolExecutor(1, initializer=_ignore_interrupts) as pool:
        try:
            return pool.submit(carried_out, task).result()
        except BrokenProcessPool:
            return Failed(
                task.keys,
                Failure(
                    "its process was killed twice, the second time while no other workload ran (lack of "
                    "memory?)"
                ),
            )


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that the user has started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_tasks(
    tasks: Sequence[Task], *, workers: int = 1, on_rows: Callable[[list[Row]], None] | None = None
) -> list[Row]:
    """Run all tasks in so many processes; rows in the order of the tasks, whatever finished first.

    ``on_rows(rows)`` is called when a task has ended. If a task fails, its error is raised and the tasks that
    have not begun do not run.
    """
    done: dict[int, list[Row]] = {}
    for at, outcome in here(workers)(tasks):
        if isinstance(outcome, Failed):
            raise outcome.error
        done[at] = outcome
        if on_rows is not None:
            on_rows(outcome)
    return [row for at in range(len(tasks)) for row in done[at]]


def run_campaign(
    campaign: Campaign, *, workers: int = 1, on_done: Callable[[int], None] | None = None
) -> list[Row]:
    """Run everything; rows in the order of scenarios, seeds, variants.

    ``workers`` processes; ``on_done(n)`` is called when ``n`` more emulations are over. Raises what a run
    raises.
    """

    def on_rows(rows: list[Row]) -> None:
        if on_done is not None:
            on_done(len(rows))

    return run_tasks(tasks_of(campaign), workers=workers, on_rows=on_rows)
