"""``headway arrivals``: how users' jobs come, from a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, examples, say, tell_issues
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.workload import Trace
    from headway_plugins.grid.estimation import Estimator, Method
    from headway_plugins.grid.fitted_log import FittedLog

#: Users that are listed, the users with the most jobs.
_LISTED = 20
#: Digits of what is written.
_DIGITS = 9


@click.group(
    "arrivals",
    epilog=examples(
        "headway arrivals fit log.swf.gz -o site.yaml         users and their bursts",
        "headway generate login-logout --set file=site.yaml   jobs that arrive like the log's",
    ),
)
def command() -> None:
    """How users' jobs come: logins, bursts and silences."""


@command.command("fit")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path),
              help="File to be written (.yaml), for the model login-logout. Default: print the fit "
                   "only.")  # fmt: skip
@click.option("--by", "by", type=click.Choice(["user", "group"]), default="user", show_default=True,
              help="Fit a process to the jobs of each user, or of each group.")  # fmt: skip
@click.option("--method", type=click.Choice(["silences", "counts"]), default="silences", show_default=True,
              help="Fit the chance of no job within a time, or the numbers of jobs in 300 s.")  # fmt: skip
@click.option("--estimator", type=click.Choice(["exact", "tumbling"]), default="exact", show_default=True,
              help="Estimate that chance from all windows, or from windows side by side.")  # fmt: skip
@click.option("--window", type=click.Choice(["active", "log"]), default="active", show_default=True,
              help="Compute rates over the time from the user's first to last job, or over the whole "
                   "log.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first broken line of TRACE.")
@printed_json
def fit(
    trace_path: Path, output: Path | None, by: str, method: Method, estimator: Estimator, window: str,
    strict: bool,
) -> None:  # fmt: skip
    """Fit the model of users that log on, submit and log off to TRACE, and write the users to a file.

    Tells of each user the rates, the share of time logged on and the mean jobs of a login. A user that
    submits evenly is Poisson-like: always logged on.
    """
    from headway.workload import read_trace
    from headway_plugins.grid.fitted_log import fit_log

    if output is not None and output.suffix not in (".yaml", ".yml"):
        raise UserError(f"{output}: expected a file that ends in .yaml")
    trace = read_trace(trace_path, strict=strict)
    tell_issues(trace)
    found = fit_log(trace, by=by, method=method, estimator=estimator, whole_log=window == "log")
    if output is not None:
        _write(output, said(found, trace_path.name, by, method, estimator, window))
    _show(found, trace, by)
    if output is not None:
        say(f"{output}: {len(found.fits):,} {by}s; generate with: "
            f"headway generate login-logout --set file={output}")  # fmt: skip


def said(
    found: FittedLog, name: str, by: str, method: str, estimator: str, window: str
) -> dict[str, Any]:  # fmt: skip
    """What the file says, as YAML values."""
    users = []
    for (user, group), one in found.fits.items():
        about: dict[str, Any] = {
            "jobs": one.jobs,
            "seconds": _short(one.duration),
            "batch": _short(one.batch),
        }
        if one.variation == one.variation:
            about["cv"] = _short(one.variation)
        if one.shape is not None:
            about |= {"error": _short(one.shape.two_error), "error_of_one": _short(one.shape.one_error)}
        if one.distance is not None:
            about["distance"] = _short(one.distance)
        rates = {"lambda": one.rates.logon, "delta": one.rates.logout, "mu": one.rates.submit}
        users.append(
            {"user": user, "group": group, **{key: _short(rate) for key, rate in rates.items()}, "fit": about}
        )
    return {
        "model": "login-logout",
        "fitted": {"trace": name, "by": by, "method": method, "estimator": estimator, "window": window},
        "users": users,
        "runtimes": {
            "all": _stages(found.runtimes),
            "groups": {group: _stages(stages) for group, stages in found.group_runtimes.items()},
        },
    }


def _stages(stages: Any) -> dict[str, list[float]]:
    return {"knots": [_short(k) for k in stages.knots], "masses": [_short(m) for m in stages.masses]}


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _write(output: Path, data: dict[str, Any]) -> None:
    import yaml

    try:
        output.write_text(yaml.safe_dump(data, sort_keys=False, default_flow_style=None), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{output}: the file cannot be written: {error.strerror}") from error


def _show(found: FittedLog, trace: Trace, by: str) -> None:
    from rich import box
    from rich.table import Table

    from headway.report.quantities import duration, number, share

    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )
    table.add_column(by, no_wrap=True)
    for title in ("jobs", "CV", "in a second", "logged on", "login", "jobs a login", "errors"):
        table.add_column(title, justify="right")
    ranked = sorted(found.fits.items(), key=lambda item: -item[1].jobs)
    for (user, group), one in ranked[:_LISTED]:
        rates = one.rates
        logins = ["always", "", "Poisson-like"] if one.poisson else [
            share(rates.share_in), duration(1.0 / rates.logout), number(rates.burst)
        ]  # fmt: skip
        errors = f"{one.shape.two_error:.3f} / {one.shape.one_error:.3f}" if one.shape is not None else ""
        table.add_row(
            str(group if by == "group" else user), number(one.jobs), number(one.variation),
            number(one.batch), *logins, errors,
        )  # fmt: skip
    table.caption = "errors: largest of two exponentials / of one, beside the chance of no job in a time"
    table.caption_justify = "left"
    console().print(table)
    even = sum(one.poisson for one in found.fits.values())
    say(f"{trace.path}: {len(found.fits):,} {by}s, {even:,} of them Poisson-like")
    if found.slope is not None:
        say(
            f"rates of jobs fall by the factor {found.slope:.3g} from each {by} to the next, "
            f"R2 {found.r2:.3f}"
        )
    if found.left_out:
        say(f"{found.left_out:,} jobs are left out: of {by}s without time between their first and last job, "
            "or not known")  # fmt: skip
