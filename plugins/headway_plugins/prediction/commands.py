"""``headway fit`` and ``headway predict``: what the recorded runs of an application say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import adapter_option, console, examples, say
from headway.cli.numbers import FiniteRange
from headway.errors import UserError, nearest

if TYPE_CHECKING:
    from headway.config import Adapters
    from headway_plugins.prediction.applications import Application
    from headway_plugins.prediction.models import Model, Prediction
    from headway_plugins.prediction.regression import Checks

#: Sizes that are predicted at once.
_MOST = 1000

_applications = click.option(
    "--applications", "applications_path", type=click.Path(path_type=Path),
    help="YAML file that describes the applications.",
)  # fmt: skip
_formula = click.option(
    "--formula", help="Instead of --applications: what the runtime grows with; P is the number of nodes."
)
_runs = click.option(
    "--runs", "runs_path", type=click.Path(path_type=Path),
    help="CSV file with a run on each line: the parameters, runtime; optional: application, pool, state, "
         "end. Or accounting: the output of sacct -P, a PBS server's log or LSF's lsb.acct.",
)  # fmt: skip
_config = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path),
    help="Instead of these options: the daemon's configuration, whose plugin scopred knows the runs.",
)  # fmt: skip
_pool = click.option(
    "--pool", help="Use only the runs of this pool: runs on different kinds of nodes do not mix."
)


@click.command("fit", epilog=examples("headway fit ft --formula 'N/P*log(N)' --runs runs.csv"))
@click.argument("name", metavar="APP")
@_applications
@_formula
@_runs
@_config
@adapter_option
@_pool
@printed_json
def fit(
    name: str, applications_path: Path | None, formula: str | None, runs_path: Path | None,
    config_path: Path | None, adapter_files: tuple[Path, ...], pool: str | None,
) -> None:  # fmt: skip
    """Fit an application's formula to its recorded runs.

    Tells each term's coefficient, how well they explain the runs, and whether the residuals look as they
    should.
    """
    model = _of(name, applications_path, formula, runs_path, config_path, adapter_files, pool)
    show_fit(name, model)


@click.command(
    "predict",
    epilog=examples(
        "headway predict ft --formula 'N/P*log(N)' --runs runs.csv --set N=33554432 --nodes 8..64"
    ),
)
@click.argument("name", metavar="APP")
@_applications
@_formula
@_runs
@_config
@adapter_option
@_pool
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter. Repeatable.")
@click.option("--nodes", help="Numbers of nodes: 8,12 or 8..64, which is 8, 16, 32 and 64.")
@click.option("--granularity", type=FiniteRange(1, 86400), default=60, show_default=True,
              help="Seconds of which suggested limits are multiples.")  # fmt: skip
@printed_json
def predict(
    name: str, applications_path: Path | None, formula: str | None, runs_path: Path | None,
    config_path: Path | None, adapter_files: tuple[Path, ...], pool: str | None,
    settings: tuple[str, ...], nodes: str | None, granularity: float,
) -> None:  # fmt: skip
    """Predict how long further runs of an application take, and suggest limits for them.

    The limit is the upper end of the interval that a further run is in, rounded up. A prediction that must
    not be used says why.
    """
    from headway_plugins.prediction.applications import parse_settings

    words: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key.strip() in words:
            raise UserError(f"--set {setting}: expected NAME=VALUE, and each name once")
        words[key.strip()] = value.strip()
    given = parse_settings(words, "--set")
    model = _of(name, applications_path, formula, runs_path, config_path, adapter_files, pool)
    show_predictions(model, _points(model.application, given, nodes), granularity)


def _of(
    name: str, applications_path: Path | None, formula: str | None, runs_path: Path | None,
    config_path: Path | None, adapter_files: tuple[Path, ...], pool: str | None,
) -> Model:  # fmt: skip
    """The runs that the options name, and how to fit them."""
    if config_path is not None:
        if applications_path is not None or formula is not None or runs_path is not None:
            raise UserError(
                "expected either --config, or --runs with --applications or --formula; found both"
            )
        from headway.config import Adapters

        return _recorded(name, config_path, Adapters.with_files(adapter_files), pool)
    application = _application(name, applications_path, formula)
    if runs_path is None:
        raise UserError("expected --runs FILE or --config FILE, found neither")
    return _model(name, application, runs_path, pool)


def _recorded(name: str, path: Path, adapters: Adapters, pool: str | None) -> Model:
    """What a daemon has recorded of an application; says how good its predictions were."""
    from headway.config import load_config
    from headway.daemon.replay import learned_by_predictors
    from headway.journal import Journal
    from headway.plugins import Catalogue, make_plugin
    from headway_plugins.prediction.scopred import Scopred

    config = load_config(path, adapters)
    catalogue = Catalogue()
    enabled = [
        one for one in catalogue.enabled(config.plugin_configs())
        if issubclass(catalogue.get(one.name, one.where), Scopred)
    ]  # fmt: skip
    if not enabled:
        raise UserError(f"{path}: plugins: expected scopred to be enabled, found it is not")
    plugin: Scopred = make_plugin(catalogue.get(enabled[0].name), enabled[0])
    if name not in plugin.applications:
        raise UserError(f"{path}: no application is called {name!r}.{nearest(name, plugin.applications)}")
    with Journal.open(config.journal, create=False, read_only=True) as journal:
        run = journal.last_run()
        states = learned_by_predictors(journal, run, catalogue, adapters) if run is not None else {}
    if enabled[0].name in states:
        plugin.restore(states[enabled[0].name])
    kinds = plugin.kinds(name)
    if not kinds:
        raise UserError(f"{path}: expected recorded runs of {name!r}, found none")
    if pool is None and len(kinds) > 1:
        raise UserError(f"expected --pool with one of {', '.join(map(repr, kinds))}: runs do not mix")
    if pool is not None and plugin.kind(pool) not in kinds:
        raise UserError(f"--pool {pool}: expected a pool with runs of {name!r}.{nearest(pool, kinds)}")
    whole = plugin.figures()
    if whole["answered"]:
        say(
            f"Of {whole['jobs']} jobs that completed {100 * whole['answered']:.0f} % were predicted, "
            f"{whole['mean_error_percent']:.1f} % off on average, "
            f"{100 * whole['inside_interval']:.0f} % of them inside their interval (all applications)."
        )
    return plugin.model(name, pool if pool is not None else kinds[0])


def _application(name: str, path: Path | None, formula: str | None) -> Application:
    from headway_plugins.prediction.applications import Application, read_applications
    from headway_plugins.prediction.formulas import parse

    if (path is None) == (formula is None):
        raise UserError(
            "expected either --applications FILE or --formula, found " + ("both" if path else "neither")
        )
    if path is None:
        assert formula is not None
        sizes = {"P": "nodes"} if "P" in parse(formula).parameters else {}
        return Application.model_validate({"formula": formula, "sizes": sizes})
    known = read_applications(path)
    if name not in known:
        raise UserError(f"{path}: no application is called {name!r}.{nearest(name, known)}")
    return known[name]


def _model(name: str, application: Application, path: Path, pool: str | None) -> Model:
    """The model of the runs in a file; of a single pool, if there are several."""
    from headway_plugins.prediction.models import Model
    from headway_plugins.prediction.run_lists import read_runs

    recorded = read_runs(path, name, application)
    pools = sorted({one.pool for one in recorded})
    if pool is None and len(pools) > 1:
        raise UserError(f"{path}: expected --pool with one of {', '.join(map(repr, pools))}: runs do not mix")
    if pool is not None and pool not in pools:
        raise UserError(f"--pool {pool}: expected a pool of {path}.{nearest(pool, pools)}")
    return Model(application, [one.run for one in recorded if pool is None or one.pool == pool])


def _points(
    application: Application, given: dict[str, float], nodes: str | None
) -> list[dict[str, float]]:  # fmt: skip
    """The points that are asked for: all parameters, at each size."""
    names = [name for name, kind in application.sizes.items() if kind == "nodes"]
    if nodes is not None and not names:
        raise UserError(
            "--nodes: expected an application with a parameter that is its nodes (sizes), found none"
        )
    for name in given:
        if name not in application.parameters:
            raise UserError(f"--set {name}: unknown parameter.{nearest(name, application.parameters)}")
    points = [given] if nodes is None else [{**given, **dict.fromkeys(names, n)} for n in sizes(nodes)]
    missing = [name for name in application.parameters if name not in points[0]]
    if missing:
        raise UserError("expected --set " + " --set ".join(f"{n}=VALUE" for n in missing) + ", found none")
    return points


def sizes(text: str) -> list[float]:
    """``8,12``, ``8..64`` (doubled, and the last) or both; :class:`UserError` for anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = (word.strip() for word in part.partition(".."))
        ends = [first, last] if dots else [first]
        if not all(end.isascii() and end.isdigit() and 0 < int(end) < 10**7 for end in ends):
            raise UserError(f"--nodes {text}: expected numbers such as 8,12 or 8..64, found {part.strip()!r}")
        size = int(first)
        while dots and size < int(last):
            found.append(size)
            size *= 2
        found.append(int(last) if dots else size)
    if len(found) > _MOST:
        raise UserError(f"--nodes: expected at most {_MOST} numbers, found {len(found)}")
    return [float(size) for size in sorted(set(found))]


def show_fit(name: str, model: Model) -> None:
    """Print the coefficients of each response's formula, and how good they are."""
    from rich.table import Table

    fits = model.fits()
    left = f"; {model.left_out} do not count" if model.left_out else ""
    if fits and model.without_value:
        left += f", of them {model.without_value} because {model.why_without}"
    say(f"{name}: {model.counted} {'run' if model.counted == 1 else 'runs'}{left}.")
    if not fits and model.without_value:
        raise UserError(
            f"{name}: expected runs at which the formula has a value, found none: {model.why_without}"
        )
    if not fits:
        raise UserError(f"{name}: expected runs that completed and have all parameters, found none")
    screen = console()
    for response, fitted in fits.items():
        one, formula = fitted.fit, fitted.formula
        terms = [term.text for term in formula.terms]
        if len(one.coefficients) > len(terms):
            terms = ["constant", *terms]
        table = Table("term", "coefficient", box=None, pad_edge=False)
        for term, value in zip(terms, one.coefficients, strict=True):
            table.add_row(term, f"{value:.6g}")
        say(f"\n{response} = {formula.text}")
        screen.print(table)
        if one.df < 1:
            say(f"Too few runs to say how good that is: {one.n} for a rank of {one.rank}.")
            continue
        say(f"R2 {one.r2:.6f}, adjusted {one.adjusted_r2:.6f}; s {one.s:.4g} s; {one.df} degrees of freedom")
        verdict = "the terms explain the runs" if one.significant else "no more than chance would explain"
        say(f"F {one.f:.6g}, critical {one.f_critical:.6g}: {verdict}")
        if one.rank < len(one.coefficients):
            say(
                f"Rank {one.rank} of {len(one.coefficients)}: these runs do not tell all terms apart; "
                "predictions where that matters are refused."
            )
        for line in _remarks(one.checks()):
            say(line)


def _remarks(checks: Checks) -> list[str]:
    found = []
    if abs(checks.autocorrelation) > 0.5:
        found.append(
            f"Residuals follow each other (lag 1: {checks.autocorrelation:.2f}): something else changed."
        )
    if checks.breusch_pagan < 0.05:
        found.append(
            f"Residuals are not equally spread (Breusch-Pagan p {checks.breusch_pagan:.3f}): "
            "the intervals are too wide in one place and too narrow in another."
        )
    return found


def show_predictions(model: Model, points: Sequence[dict[str, float]], granularity: float) -> None:
    """Print a line for each point."""
    from rich.table import Table

    level = 100 * model.application.level
    table = Table(
        *model.parameters, "predicted s", f"+- mean {level:g} %", f"+- run {level:g} %", "limit s",
        "basis", "leverage", "", box=None, pad_edge=False,
    )  # fmt: skip
    for point, found in zip(points, model.predict_all(points), strict=True):
        runs = "run" if found.n == 1 else "runs"
        basis = f"{found.basis}, {found.n} {runs}" if found.basis else ""
        table.add_row(
            *(f"{point[name]:.12g}" for name in model.parameters),
            _seconds(found.mean), _seconds(found.ci), _seconds(found.pi), _limit(found, granularity),
            basis, _seconds(found.leverage, 3), found.problem,
        )  # fmt: skip
    console().print(table)


def _seconds(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) and abs(value) < 1000 else (
        f"{value:.0f}" if math.isfinite(value) else ""
    )  # fmt: skip


def _limit(found: Prediction, granularity: float) -> str:
    """What to ask for; "" where the prediction must not be used."""
    if not found.valid or not math.isfinite(found.upper):
        return ""
    return f"{math.ceil(max(found.upper, granularity) / granularity - 1e-9) * granularity:.0f}"
