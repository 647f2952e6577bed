"""``headway shadow``: what headway would have done on a cluster that it only watched."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import DURATION, MOMENT
from headway.cli.common import (
    adapter_option,
    examples,
    messages,
    named_config,
    plugin_option,
    prepare_directory,
    say,
    site_config_option,
)
from headway.cli.log_output import set_up_log
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.config import Adapters, Config
    from headway.journal import Journal
    from headway.shadow.findings import Delay, Findings
    from headway.shadow.foretold import Plan
    from headway.shadow.record import Record


class _Since(click.ParamType):
    """How long ago (``14d``), or a moment."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return time.time() - DURATION.convert(value, param, ctx)
        except click.BadParameter:
            pass
        try:
            return MOMENT.convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"expected a time before now (14d, 12h) or a date (2026-03-01); found {value!r}", param, ctx
            )


_SINCE = _Since()


@click.group("shadow")
def command() -> None:
    """Compare what the batch system did with what headway would have done, from the journal of a daemon that
    only watched (`headway run --monitor`)."""


@command.command(
    "report",
    epilog=examples(
        "headway shadow report -c site.yaml --since 14d --out shadow.html",
        "headway shadow report --journal watched.sqlite --policy conservative --json",
    ),
)
@site_config_option
@click.option("--journal", "journal_path", metavar="JOURNAL",
              help="A SQLite file or a database URL, in the place of the configuration's journal. Without "
                   "-c, the configuration is that of the last recorded run.")  # fmt: skip
@adapter_option
@plugin_option
@click.option("--policy", metavar="NAME",
              help="A policy or preset, in the place of the configured policy.")  # fmt: skip
@click.option("--since", type=_SINCE, default=None, metavar="TIME",
              help="Only what was recorded since then: 14d, 12h (before now) or 2026-03-01. Default: "
                   "all.")  # fmt: skip
@click.option("--until", type=_SINCE, default=None, metavar="TIME",
              help="Only what was recorded until then; as --since. Default: now.")  # fmt: skip
@click.option("--latencies", "latencies_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Measured latencies, from `headway starts --out FILE` of a daemon that drove. Default: "
                   "those of the journal.")  # fmt: skip
@click.option("--draws", type=click.IntRange(2, 100), default=5, show_default=True,
              help="Emulations, each with other draws of the latencies.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Of the first emulation.")  # fmt: skip
@click.option(
    "--users", is_flag=True, help="A table by user, too: names of users are in no report without it."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR|FILE.html",
              help="Write the page to this file, or shadow.html and shadow.json into this "
                   "directory.")  # fmt: skip
@json_option("headway.shadow.findings:Findings")
def report(
    config_path: Path | None, journal_path: str | None, adapter_files: tuple[Path, ...],
    plugin_files: tuple[Path, ...], policy: str | None, since: float | None, until: float | None,
    latencies_path: Path | None, draws: int, seed: int, users: bool, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Tell what headway would have done with the jobs that it watched: waits, slowdown and use of both, by
    pool, QOS, account, size, GPU and hour, with intervals, and what was left out.

    Reads the journal, which the daemon may write to meanwhile, and nothing else.
    """
    from headway.config import Adapters
    from headway.inputs.extras import need_report
    from headway.journal import Journal
    from headway.shadow.comparing import compare
    from headway.shadow.record import read_record

    need_report("headway shadow report")
    page = _page(out)
    adapters = Adapters.with_files(adapter_files)
    config = _config(config_path, journal_path, adapters)
    place = journal_path if journal_path is not None else config.journal if config is not None else ""
    begin, end = since if since is not None else float("-inf"), until if until is not None else float("inf")
    if end <= begin:
        raise UserError("--until: expected a time after --since, found one before it")
    with Journal.open(place, create=False, read_only=True) as journal:
        record = read_record(journal, begin, end)
        plan, delay = _planned(journal, record, config, adapters, plugin_files, policy, latencies_path)
    with _progress(draws * len(record.stretches)) as drawn:
        findings, curves = compare(record, plan, delay, draws=draws, seed=seed, users=users, drawn=drawn)
    if page is not None:
        _write(page, out, findings, curves)
    if as_json:
        say_json(findings)
    else:
        _tell(findings)
        if page is not None:
            say(f"written: {page}")


def _config(config_path: Path | None, journal_path: str | None, adapters: Adapters) -> Config | None:
    """The configuration; None: that of the recorded run."""
    from headway.config import load_config

    if config_path is None and journal_path is not None:
        return None
    return load_config(named_config(config_path), adapters)


def _page(out: Path | None) -> Path | None:
    """The file of the page; its directory is there, so that a long run does not end in an error."""
    if out is None:
        return None
    if out.suffix.lower() in (".html", ".htm") and not out.is_dir():
        prepare_directory(out.parent)
        return out
    prepare_directory(out)
    return out / "shadow.html"


def _planned(
    journal: Journal, record: Record, config: Config | None, adapters: Adapters,
    plugin_files: tuple[Path, ...], policy: str | None, latencies_path: Path | None,
) -> tuple[Plan, Delay]:  # fmt: skip
    """What decides in the emulation, and how long starts and ends take."""
    from headway.daemon.replay import config_of
    from headway.dry_run.site import enabled, label_of
    from headway.inputs.log import set_up_later
    from headway.plugins import Catalogue
    from headway.shadow.foretold import Plan, remembering

    if config is None:
        config = config_of(record.run, adapters)
    set_up_later(partial(set_up_log, config.log))
    catalogue = Catalogue(plugin_files)
    plugins = enabled(config, catalogue, policy, True)
    latencies, delay = _latencies(journal, record, latencies_path)
    plan = Plan(
        plugins, catalogue, policy or label_of(config, plugins, catalogue), latencies,
        cycle=config.cycle, wait_for_down_nodes=config.wait_for_down_nodes, tiers=config.tiers,
        remembering=remembering(plugins, catalogue),
    )  # fmt: skip
    return plan, delay


def _latencies(journal: Journal, record: Record, path: Path | None) -> tuple[Any, Delay]:
    from headway.experiment.planned_starts import read_real_cluster
    from headway.journal.latencies import measured, together
    from headway.shadow.foretold import delay_of, with_assumed_start

    if path is not None:
        found = read_real_cluster(path, "--latencies").latencies
        return found, delay_of(found, f"the file {path.name}")
    found = together(measured(journal))
    if found.start:
        return found, delay_of(found, "what a daemon with this journal measured when it drove")
    watched = with_assumed_start(record.latencies)
    return watched, delay_of(watched, "what watching shows", assumed=True)


def _progress(emulations: int) -> Any:
    from contextlib import contextmanager

    from headway.cli.screen import new_progress

    @contextmanager
    def shown() -> Any:
        progress = new_progress("emulations")
        with progress:
            task = progress.add_task("shadow", total=emulations)
            yield lambda: progress.advance(task)

    return shown()


def _write(page: Path, out: Path | None, findings: Findings, curves: Any) -> None:
    import msgspec

    from headway.report.atomic import writing
    from headway.shadow.page import write_page

    write_page(page, findings, curves)
    if page != out:
        with writing(page.with_suffix(".json")) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(findings), indent=1).decode() + "\n")


def _tell(findings: Findings) -> None:
    """The report in sentences, and what was left out."""
    from headway.shadow.sentences import delays, moment, summary

    for sentence in summary(findings):
        say(sentence)
    say(delays(findings))
    for counted in findings.left_out:
        say(f"jobs that {counted.what}: {counted.jobs}, not compared")
    for counted in findings.noted:
        say(f"jobs that {counted.what}: {counted.jobs}, compared")
    for gap in findings.gaps:
        done = "bridged: no job was missed" if gap.bridged else "not compared"
        say(f"gap from {moment(gap.begin)} to {moment(gap.end)}: {gap.why}; {done}")
    for remark in findings.remarks:
        say(remark, messages(), style="yellow")
