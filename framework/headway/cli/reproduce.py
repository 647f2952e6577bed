"""``headway reproduce``: a paper's experiments again."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, messages
from headway.errors import UserError, nearest
from headway.inputs.entry_points import entry_points
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.experiment.claims_page import Claim
    from headway.experiment.reproduction import Reproduction

GROUP = "headway.reproductions"


@click.command("reproduce")
@click.argument("name", required=False)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory for plots, rows and claims; default: NAME."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Number of seeds of each point.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="A parameter of the experiments, such as batch=1000 of measy. Repeatable.")  # fmt: skip
@click.option("--keep", is_flag=True,
              help="Keep the rows in the directory that a call with the same parameters made, and run the "
                   "rest. Default: run everything.")  # fmt: skip
@click.option("--rules", is_flag=True,
              help="Run nothing; print the rules of evaluation that the published experiment "
                   "breaks.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes.")
@click.option(
    "--traces",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="HEADWAY_TRACES",
    help="Directory of real traces, for the experiments that need one.",
)
@printed_json
def command(
    name: str | None,
    out: Path | None,
    seeds: int,
    settings: tuple[str, ...],
    keep: bool,
    rules: bool,
    workers: int,
    traces: Path | None,
) -> None:
    """Run the experiments of the paper NAME and say, claim by claim, whether they hold, and whether what we
    measured is as large as what was published. The claims end with the rules of evaluation that the published
    experiment breaks, and the rules that it breaks as it was run here.

    Rows are written while it runs: if it is ended, the same command with --keep goes on from there.
    Without NAME, lists what can be reproduced.
    """
    from headway.cli.screen import new_progress

    need_report("headway reproduce")
    from headway.experiment.claims_page import CLAIMS, Call, claims_page
    from headway.experiment.published import UNDECLARED, published_rules
    from headway.experiment.reproduction import Context
    from headway.report.atomic import writing

    screen = console()
    if name is None:
        for label, entry in sorted(reproductions().items()):
            screen.print(f"{label}: {entry.load()().title}", markup=False)
        return
    paper = made(name, settings)
    said = getattr(paper, "published", UNDECLARED)
    if rules:
        screen.print(published_rules(said), markup=False, end="", soft_wrap=True)
        return
    out = out or Path(name)
    out.mkdir(parents=True, exist_ok=True)
    call = str(Call(name, seeds, settings, traces is not None))
    with new_progress() as progress:
        tasks = []
        context = Context(
            out=out,
            seeds=tuple(range(1, seeds + 1)),
            workers=workers,
            traces=traces,
            on_plan=lambda title, total: tasks.append(progress.add_task(title, total=total)),
            on_done=lambda n: progress.advance(tasks[-1], n),
            rows=[],
            call=call,
            keep=keep,
        )
        with in_force(name, settings):
            claims = paper.run(context)
    with writing(out / CLAIMS) as stream:
        stream.write(claims_page(paper.title, call, claims, said, context.broken))
    _show(claims)
    messages().print(f"written: {out}", markup=False)


def _show(claims: Sequence[Claim]) -> None:
    """A line a claim: whether it holds, what the paper says, and what was measured."""
    from rich.text import Text

    for claim in claims:
        style = {"yes": "green", "no": "red"}.get(claim.holds, "yellow")
        line = Text.assemble((f"{claim.holds:8}", style), f" {claim.where}: {claim.paper}: {claim.measured}")
        if claim.size:
            line.append(f" {claim.size}", style="yellow")
        console().print(line)


def reproductions() -> dict[str, EntryPoint]:
    """What can be reproduced, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def made(name: str, settings: Sequence[str]) -> Reproduction:
    """A paper's experiments with these settings; :class:`UserError` for an unknown name, for a parameter that
    they do not have, and for a value of another kind."""
    from headway.cli.settings import of_kind
    from headway.inputs.settings import parsed_settings

    papers = reproductions()
    if name not in papers:
        raise UserError(f"no reproduction is called {name!r}.{nearest(name, papers)}")
    kind = papers[name].load()
    given = parsed_settings(settings)
    known = {one.name: one.annotation for one in inspect.signature(kind, eval_str=True).parameters.values()}
    for key in given:
        if key not in known:
            raise UserError(f"--set: {name} has no parameter {key!r}.{nearest(key, known)}")
    with in_force(name, settings):
        paper: Reproduction = kind(**{key: of_kind(value, known[key], key) for key, value in given.items()})
    return paper


@contextmanager
def in_force(name: str, settings: Sequence[str]) -> Iterator[None]:
    """Experiments that break under values that a person has given say so: what they need of each other and
    of the workloads is known only here."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError) as error:
        if not settings:
            raise
        said = " ".join(f"--set {setting}" for setting in settings)
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{name} cannot be run with {said}: {type(error).__name__}: {reason}") from error
