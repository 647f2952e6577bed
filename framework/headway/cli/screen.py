"""What rich draws: tables, colours and progress bars."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway.cli.printable import printable

if TYPE_CHECKING:
    from headway.workload.jobs import TraceJob

#: How often a progress bar looks at the clock of the emulation.
_CYCLES_PER_UPDATE = 500

#: Columns of tables that go to a file or a pipe; the variable COLUMNS says otherwise.
_PIPED_WIDTH = 120
#: The variable COLUMNS counts between these: with fewer nothing can be read, and lines are filled up to more.
_WIDTHS = (40, 1000)


class _Console(Console):
    """A console to which a text is a text: no markup and no names of emoji are looked for in it, since job
    names and accounts stand in tables too. Styles are those of what is printed (:class:`rich.text.Text`)."""

    def __init__(self, **more: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **more)

    def render_str(self, text: str, **more: Any) -> Any:
        return super().render_str(printable(text), **more)

    def on_broken_pipe(self) -> None:
        # A reader that goes away is no error; rich would end the process with one.
        raise BrokenPipeError


def screen(*, stderr: bool) -> Console:
    """Standard output, or standard error."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and int(asked[:9]):
        least, most = _WIDTHS
        return _Console(stderr=stderr, width=min(max(int(asked[:9]), least), most))
    made = _Console(stderr=stderr, _environ={**os.environ, "COLUMNS": ""})
    if not made.is_terminal:
        made = _Console(stderr=stderr, width=_PIPED_WIDTH)
    return made


@contextmanager
def job_progress(
    label: str, jobs: Sequence[TraceJob], shown: Progress | None = None
) -> Iterator[Callable[[float], None]]:
    """A progress bar over a workload's submissions; yields what to call after each cycle with its time."""
    times = [job.job.submit_time for job in jobs]
    total = len(times)
    progress = shown if shown is not None else new_progress()
    task = progress.add_task(label, total=total)
    state = {"cycles": 0, "done": 0}

    def advance(now: float) -> None:
        state["cycles"] += 1
        if state["cycles"] % _CYCLES_PER_UPDATE == 0:
            done = state["done"]
            while done < total and times[done] <= now:
                done += 1
            state["done"] = done
            progress.update(task, completed=done)

    if shown is None:
        with progress:
            yield advance
            progress.update(task, completed=total)
    else:
        yield advance
        progress.update(task, completed=total)


def new_progress(unit: str = "jobs") -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    where = screen(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit),
        TimeRemainingColumn(), console=where, disable=not where.is_terminal, transient=True,
    )  # fmt: skip
