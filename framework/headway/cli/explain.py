"""``headway explain``: why a job waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli import common
from headway.cli.as_json import json_option, say_json
from headway.cli.asking import JobId, daemon_of
from headway.cli.common import (
    adapter_option,
    daemon_config_option,
    examples,
    messages,
    named_config,
    plugin_option,
    reaching_the_cluster,
    readable_config,
    say,
    wall_clock,
    when,
)
from headway.cli.earlier_runs import first_submissions, may_have_journal
from headway.cli.known_replicas import known_replicas
from headway.cli.log_output import set_up_log
from headway.errors import Failure, HeadwayError, UserError

if TYPE_CHECKING:
    from headway.cli.explanation import Told
    from headway.config import Adapters, Config
    from headway.emulation.live_copy import Copy
    from headway.journal import HistoryEntry
    from headway.model import ClusterDescription
    from headway.plugins import Catalogue, Plugins

#: Seconds for which the daemon is asked what its starts wait for.
_DAEMON_PATIENCE = 2.0
#: So many elements of an array that is over are named.
_ELEMENTS = 10


@click.command(
    "explain",
    epilog=examples(
        "headway explain 4711                               as the daemon knows it",
        "headway explain 4711 -c site.yaml --fresh          by a look at the cluster",
        "headway explain 4711 -c site.yaml --journal-only   as the last run ended",
        "headway explain 4711 --journal dry-run.db          as a dry run ended",
    ),
)
@click.argument("job_id", metavar="JOB", type=JobId())
@daemon_config_option
@plugin_option
@adapter_option
@click.option("--fresh", is_flag=True,
              help="Do not ask the daemon; look at the cluster, and emulate what follows.")  # fmt: skip
@click.option("--journal-only", is_flag=True,
              help="Do not ask the cluster; explain the job as the last recorded run ended.")  # fmt: skip
@click.option("--journal", "journal_path", metavar="JOURNAL",
              help="The same of this journal, a SQLite file or a database URL, such as a dry run's. "
              "No configuration is needed.")  # fmt: skip
@json_option("headway.cli.explanation:Explanation", "Print the same as JSON; times are seconds since 1970.")
def command(
    job_id: str,
    config_path: Path | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    fresh: bool,
    journal_only: bool,
    journal_path: str | None,
    as_json: bool,
) -> None:
    """Tell why JOB waits, which jobs are before it, when it is expected to start, and what would let it start
    now; of a job array, what becomes of its elements.

    Asks the running daemon, which tells what it planned in its last cycle, and how that changed. Without a
    configuration that can be read, its socket is enough. If none answers, with --fresh or --plugin, or for
    the first job of a queue without a planned start, looks at the cluster instead (changing nothing), asks
    the configured plugins what they would do now, and emulates what follows. What the journal says about the
    job comes last, where it can be read. Times of a recorded dry run are seconds of its own clock.
    """
    path = config_path if config_path is not None else readable_config()
    if journal_path is None and path is None:
        _without_configuration(job_id, fresh=fresh, plugins=bool(plugin_files), journal=journal_only,
                               as_json=as_json)  # fmt: skip
        return
    told: Told | None = None
    if journal_path is not None:
        journal = journal_path
        told = _from_journal(journal, *_installed(plugin_files, adapter_files), job_id)
    else:
        from headway.cli.explanation import from_daemon
        from headway.config import load_config

        # For the daemon's answer, neither plugins nor the adapter are needed here.
        path = named_config(path)
        config = load_config(path, None)
        journal = config.journal
        if journal_only:
            set_up_log(config.log)
            told = _from_journal(journal, *_installed(plugin_files, adapter_files), job_id)
        else:
            why = ""
            if not (fresh or plugin_files):
                several = len(config.clusters_by_place()) > 1
                told, why = from_daemon(config.socket_path(), job_id, several=several)
            if told is None or told.is_unplanned_head:
                told = _looked_at(path, *_installed(plugin_files, adapter_files), job_id, told, why)
    _tell(told, journal, recorded=journal_only or journal_path is not None, as_json=as_json)


def _without_configuration(job_id: str, *, fresh: bool, plugins: bool, journal: bool, as_json: bool) -> None:
    """What the daemon says whose socket is all that the user has of it."""
    from headway.cli.explanation import from_daemon

    for asked, option in ((fresh, "--fresh"), (plugins, "--plugin"), (journal, "--journal-only")):
        if asked:
            raise UserError(
                f"{option} needs a configuration: expected -c FILE, or HEADWAY_CONFIG in the environment; "
                f"found none that can be read ({', '.join(map(str, common.CONFIGS))})"
            )
    told, why = from_daemon(daemon_of(None)[0], job_id, several=True, alone=True)
    if told is None:
        raise UserError(why)
    if as_json:
        say_json(told.explanation)
        return
    for line in told.lines:
        say(line)


def _tell(told: Told, journal: str, *, recorded: bool, as_json: bool) -> None:
    """Print what is known of a job, and what the journal says about it."""
    job_id, lines = told.explanation.id, told.lines
    of_daemon = told.explanation.says == "daemon"
    history, failure = _history(journal, job_id, needed=not of_daemon)
    if not lines and not history:
        if elements := _elements(journal, job_id):
            few = ", ".join(elements[:_ELEMENTS]) + (", ..." if len(elements) > _ELEMENTS else "")
            say(f"No element of job array {job_id} is in the cluster's queue any more.")
            say(f"The journal tells of {few}.")
            return
        where = "to the journal" if recorded else "neither to the cluster nor to the journal"
        known = "not known" if recorded else "known"
        raise UserError(f"job {job_id!r} is {known} {where} {journal}")
    if as_json:
        import msgspec

        say_json(msgspec.structs.replace(told.explanation, history=tuple(history), last_failure=failure))
        return
    for line in lines or [f"Job {job_id} is not in the cluster's queue any more."]:
        say(line)
    if lines and failure:
        say(f"Its last start failed: {failure}.{'' if of_daemon else ' The daemon goes by that, too.'}")
    if history:
        say("From the journal:")
        for line in history:
            say(f"  {line}")


def _installed(plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...]) -> tuple[Catalogue, Adapters]:
    """The plugins and adapters that there are, with those of files."""
    from headway.config import Adapters
    from headway.plugins import Catalogue

    return Catalogue(plugin_files), Adapters.with_files(adapter_files)


def _configured(path: Path, adapters: Adapters) -> Config:
    """The configuration of a cluster that can be asked; :class:`UserError` if it is of another."""
    from headway.config import load_config

    config = load_config(path, adapters)
    set_up_log(config.log)
    for where, cluster in config.clusters_by_place():
        kind = adapters.get(cluster.adapter, f"{where}.adapter")
        if getattr(kind, "Options", None) is None:
            raise UserError(
                f"{where}.adapter: {cluster.adapter!r} is no real cluster that could be "
                "asked; --journal-only explains a job of a recorded run"
            )
    return config


def _looked_at(
    path: Path, catalogue: Catalogue, adapters: Adapters, job_id: str, told: Told | None, why: str
) -> Told:
    """What a fresh look at the cluster says in the place of ``told``, which the daemon says. ``told`` itself
    where the cluster is out of the user's reach. ``why`` the daemon said nothing is said first."""
    config = _configured(path, adapters)
    if why:
        say(f"Looking at the cluster: {why}", messages(), style="yellow")
    try:
        with reaching_the_cluster(path):
            return _from_cluster(config, catalogue, job_id)
    except HeadwayError:
        if told is None:
            raise
        return told


def _from_cluster(config: Config, catalogue: Catalogue, job_id: str) -> Told:
    """What the plugins make of the cluster as it is now."""
    from headway.cli.explanation import looked_up
    from headway.config import live_adapter
    from headway.emulation.live_copy import Copy
    from headway.inquiry import Inquiry
    from headway.plugins import Plugins
    from headway.scheduler import Scheduler
    from headway.state.records import ON_NODES

    configs = catalogue.enabled(config.plugin_configs())
    with live_adapter(config, read_only=True) as adapter:
        plugins = Plugins.load(configs, catalogue, None)
        adapter.tell_words(plugins.job_words)
        if plugins.requiring("policy"):
            adapter.tell_policy()
        adapter.submitted_before(partial(first_submissions, config))
        copy = Copy(adapter, known_replicas(config))
        cluster = config.with_energy(copy.cluster)
        catalogue.check_energy(configs, cluster)
        scheduler = Scheduler(
            cluster, plugins, seed=config.seed, clock=wall_clock, capabilities=adapter.capabilities,
            saved=_what_is_known(config, plugins, catalogue),
            wait_for_down_nodes=config.wait_for_down_nodes, tiers=config.tiers,
        )  # fmt: skip
    wished = scheduler.step(copy.now, copy.events)
    told = looked_up(
        Inquiry(scheduler, wall_clock, wished), adapter.full_job_id(job_id, copy.cluster.name), "cluster"
    )
    for problem in scheduler.problems:
        if problem.traceback:
            say(f"Plugin {problem.plugin!r} failed in hook {problem.hook}: {problem.message}", messages(),
                style="yellow")  # fmt: skip
    job = told.job
    if not told.lines or job is None:
        return told.with_lines(_starts_that_wait(config) if told.lines else [])
    more = [] if job.status in ON_NODES else _starts_that_wait(config)
    # A job with a promised time is told that time, whatever a forecast without promises would say; and a
    # forecast without the batch system's own policy would be of another queue.
    promised = plugins.implementations("promised") or plugins.requiring("policy")
    if not promised and job.entries is None and not scheduler.state.why_waiting(job):
        whatever = ", whatever is predicted," if scheduler.state.predict is not None else ""
        more.append(_forecast(config, catalogue, copy, cluster, job.id, whatever))
    return told.with_lines(more)


def _forecast(
    config: Config,
    catalogue: Catalogue,
    copy: Copy,
    cluster: ClusterDescription,
    job_id: str,
    whatever: str,
) -> str:
    """When the job starts if a copy of the cluster runs on, as a sentence; ``whatever`` of runtimes does not
    count in it."""
    from headway.dry_run.latencies import measured_latencies
    from headway.emulation import emulate

    try:
        future = emulate(
            cluster, copy.jobs, catalogue.enabled(config.plugin_configs()), catalogue, label="forecast",
            seed=config.seed, start=copy.now, running=copy.running, power=copy.power, cycle=config.cycle,
            latencies=measured_latencies(config),
            wait_for_down_nodes=config.wait_for_down_nodes, tiers=config.tiers,
        )  # fmt: skip
    except UserError as error:
        # What plugins need an emulated cluster may lack: nodes that sleep, without an energy profile.
        return f"When it will start cannot be foreseen: no copy of the cluster can be emulated ({error})."
    start = next((r.start_time for r in future.jobs if r.job.id == job_id), None)
    if start is None:
        return "When it will start cannot be foreseen."
    return (
        f"It is expected to start at {wall_clock(start)}, if every job runs for its "
        f"estimate{whatever} and nothing else is submitted."
    )


def _starts_that_wait(config: Config) -> list[str]:
    """What the daemon's starts wait for besides processors, as sentences; none where it does not answer."""
    from headway.service.client import ask
    from headway.service.protocol import Status

    path = config.socket_path()
    if path is None or not path.exists():
        return []
    try:
        report = ask(path, Status(), timeout=_DAEMON_PATIENCE).status
    except Failure:
        return []
    several = len(config.clusters_by_place()) > 1
    waits = () if report is None else report.starts_waiting
    return [f"{f'{wait.cluster}: ' if several else ''}{wait.sentence}." for wait in waits]


def _what_is_known(config: Config, plugins: Plugins, catalogue: Catalogue) -> dict[str, Any]:
    """What plugins have promised in the last recorded run, and what those that predict runtimes have learned
    by now."""
    from headway.daemon.replay import learned_by_predictors, promised
    from headway.journal import Journal

    predicts = bool(plugins.implementations("predict_runtime"))
    if not (predicts or plugins.implementations("promised")) or not may_have_journal(config.journal):
        return {}
    try:
        with Journal.open(config.journal, create=False, read_only=True) as journal:
            run = journal.last_run()
            if run is None:
                return {}
            learned = learned_by_predictors(journal, run, catalogue, config.adapters) if predicts else {}
            return {**promised(journal, run, catalogue), **learned}
    except HeadwayError as error:
        say(f"What was learned of runtimes, or promised, is not known: {error}", messages(), style="yellow")
        return {}


def _from_journal(journal_path: str, catalogue: Catalogue, adapters: Adapters, job_id: str) -> Told:
    """What the last recorded run knew at its end."""
    from headway.cli.explanation import Explanation, Told, looked_up
    from headway.daemon.replay import config_of, repeating
    from headway.inquiry import Inquiry
    from headway.journal import Journal

    with Journal.open(journal_path, create=False, read_only=True) as journal:
        run = journal.last_run()
        if run is None:
            return Told(Explanation(job_id, "journal"), [])
        scheduler = repeating(run, catalogue, adapters)
        kind = adapters.get(config_of(run, adapters).cluster.adapter)
        job_id = kind.full_job_id(job_id, run.info.cluster.name)
        for cycle in journal.cycles(run.id):
            scheduler.step(cycle.now, cycle.events)
    return looked_up(Inquiry(scheduler, when), job_id, "journal")


def _history(journal_path: str, job_id: str, *, needed: bool) -> tuple[list[str], str]:
    """What the journal says about the job, and why its last start failed, if it did. ``needed``: say so if
    the journal cannot be read."""
    if not may_have_journal(journal_path):
        return [], ""
    from headway.journal import Journal
    from headway.journal.job_history import last_failure

    try:
        with Journal.open(journal_path, create=False, read_only=True) as journal:
            entries = journal.job_history(job_id)
    except HeadwayError as error:
        return [f"(the journal cannot be read: {error})"] if needed else [], ""
    return list(_sentences(entries)), last_failure(entries)


def _elements(journal_path: str, array_id: str) -> list[str]:
    """The elements of an array that the journal tells of."""
    if not may_have_journal(journal_path):
        return []
    from headway.journal import Journal

    with Journal.open(journal_path, create=False, read_only=True) as journal:
        return journal.elements(array_id)


def _sentences(history: Sequence[HistoryEntry]) -> list[str]:
    from headway.journal.job_history import told_once

    lines = []
    for entry in told_once(history):
        kind = type(entry.what).__name__
        at = when(entry.time)
        if entry.kind == "event":
            detail = getattr(entry.what, "outcome", "") or getattr(entry.what, "reason", "") or ""
            detail = detail or getattr(entry.what, "message", "")
            lines.append(f"{at}  {kind}{': ' + detail if detail else ''}")
        else:
            reason = getattr(entry.what, "reason", "")
            result = ""
            if entry.outcome is not None:
                result = f" ({'done' if entry.outcome.accepted else entry.outcome.message})"
            lines.append(f"{at}  decided {kind}{': ' + reason if reason else ''}{result}")
    return lines
