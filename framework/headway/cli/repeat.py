"""``headway repeat``: a campaign again, from what its results say of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import printed_json
from headway.cli.campaigns import Ran, all_failed, place_options, run_in_folder, write_all
from headway.cli.common import console, messages, say
from headway.errors import Failure, UserError
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.experiment.campaign import Row


@click.command("repeat")
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Directory that keeps the repetition. Default: it is not kept.",
)
@click.option("--anew", is_flag=True,
              help="Drop the earlier runs in that directory. Default: continue the repetition.")  # fmt: skip
@place_options
@printed_json
def command(result: Path, out: Path | None, anew: bool, workers: int | None, scheduler: str) -> None:
    """Run a campaign again from its results and say whether the numbers are the same.

    RESULT is a directory of `headway compare`. The definition is kept there; the files that
    it names must be what they were. Exit code 1 if a number differs.
    """
    need_report("headway repeat")
    from headway.experiment.campaign import tasks_of
    from headway.experiment.folder import CAMPAIGN, files_beside, read_record, read_results
    from headway.experiment.record import changed, files_of, program, surroundings
    from headway.experiment.rulebook import evidence_of, judge

    plan, before = read_results(result)
    record = read_record(result)
    if out is not None and out.resolve() == result.resolve():
        raise UserError(f"--out {out}: expected another directory than the directory of the results")
    folder = files_beside(result) or result
    catalogue = plan.catalogue()
    named = files_of(plan, catalogue).named(folder)
    for name in changed(record["files"], named):
        found = f"SHA-256 {named[name][:12]}…" if named[name] else "no such file"
        raise UserError(
            f"{folder / name}: expected the file from which the results were made (SHA-256 "
            f"{record['files'][name][:12]}…), found {found}"
        )
    for line in _differences(record, program(), surroundings()):
        say(line, messages())

    with tempfile.TemporaryDirectory(prefix="headway-repeat-") as aside:
        where = out if out is not None else Path(aside)

        def finish(ran: Ran) -> None:
            if out is not None:
                text = (result / CAMPAIGN).read_text(encoding="utf-8")
                judged = judge(evidence_of(plan, catalogue, rows=ran.rows))
                call = ["headway", "repeat", str(result), "--out", str(out)]
                write_all(where, plan, ran, judged, text=text, folder=folder, call=call)

        ran = run_in_folder(
            plan, folder, where, workers=workers, scheduler=scheduler, anew=anew, finish=finish
        )
    if ran.failed:
        raise all_failed(where, ran.failed, len(tasks_of(plan)))
    differing = _compared(before, ran.rows)
    if differing:
        raise Failure(
            f"{result}: {len(differing)} of {len(ran.rows)} emulations gave other numbers:\n"
            + "\n".join(differing[:10])
            + ("\n  …" if len(differing) > 10 else "")
        )
    say(f"{result}: {len(ran.rows)} emulations gave the same numbers", console())
    if ran.kept:
        again = f"{ran.kept} of {len(tasks_of(plan))} workloads had run before and did not run again"
        say(f"{out}: {again}; --anew runs them", console())


def _differences(record: Mapping[str, Any], ours: Mapping[str, str], around: Mapping[str, str]) -> list[str]:
    """In what this program differs from the program that made the results."""
    found = []
    if record["version"] != ours["version"]:
        found.append(f"made by headway {record['version']}, this is {ours['version']}")
    elif record["code"] != ours["code"]:
        found.append(f"made by headway {record['version']} with other source code than here")
    before = record.get("surroundings", {})
    for name, version in around.items():
        if before.get(name, version) != version:
            found.append(f"made with {name} {before[name] or '(none)'}, here is {version or 'none'}")
    return found


def _compared(before: Sequence[Row], now: Sequence[Row]) -> list[str]:
    """A line for each emulation that is missing on one side or that gave another number."""
    theirs = {row.key: row for row in before}
    found = []
    for row in now:
        place = f"  {row.scenario}, {row.x:g}, {row.variant}, seed {row.seed}"
        other = theirs.pop(row.key, None)
        if other is None:
            found.append(f"{place}: not in the results")
            continue
        names = list(dict.fromkeys([*other.values, *row.values]))
        # As text, because a metric without a value is NaN, which equals nothing.
        numbers = [(name, repr(other.values.get(name)), repr(row.values.get(name))) for name in names]
        unequal = [f"{name} was {was}, is {is_}" for name, was, is_ in numbers if was != is_]
        if not unequal and _batches(other) != _batches(row):
            unequal = ["means of batches"]
        if not unequal and other.facts != row.facts:
            unequal = ["its workload"]
        if unequal:
            more = f" (and {len(unequal) - 1} more)" if len(unequal) > 1 else ""
            found.append(f"{place}: {unequal[0]}{more}")
    return [*found, *(f"  {s}, {x:g}, {v}, seed {n}: only in the results" for s, x, v, n in theirs)]


def _batches(row: Row) -> str:
    return repr({name: list(means) for name, means in row.batches.items() if means})
