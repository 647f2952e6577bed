"""``headway check``: is everything there?"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import (
    adapter_option,
    console,
    examples,
    plugin_option,
    required_config_option,
)
from headway.cli.earlier_runs import may_have_journal
from headway.cli.log_output import set_up_log
from headway.cli.printable import printable
from headway.errors import Damaged, HeadwayError, Mistakes, UserError

if TYPE_CHECKING:
    from headway.adapter import Check, ClusterAdapter
    from headway.config import Config
    from headway.config.letters import LettersConfig
    from headway.decisions import Decision
    from headway.model import ClusterDescription
    from headway.model.modes import Mode
    from headway.plugins import Catalogue, PluginConfig, Plugins

#: Characters of a check's detail that are shown.
_LONGEST = 600
#: Less than so many free bytes on the journal's disk are too few.
ENOUGH_SPACE = 64_000_000


@click.command(
    "check",
    epilog=examples("headway check -c site.yaml    before `headway run`, as the service's user"),
)
@required_config_option
@plugin_option
@adapter_option
@json_option("headway.cli.reports:CheckReport")
def command(
    config_path: Path, plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...], as_json: bool
) -> None:
    """Check configuration, plugins, journal and cluster, and change nothing.

    Each line is one thing that `headway run` needs; under what is missing stands what to do about it. `?` is
    what cannot be found out from here.
    Exit code 0 if all is in order, 2 if the configuration is wrong, 1 if something else is missing.
    """
    from headway.adapter import Check
    from headway.config import Adapters, load_config
    from headway.emulation import validated_faults
    from headway.model import ClusterDescription
    from headway.model.modes import Mode
    from headway.plugins import Catalogue

    config = load_config(config_path, Adapters.with_files(adapter_files))
    set_up_log(config.log)
    checks = [Check("configuration", True, f"{config_path}: mode {config.mode}")]
    catalogue = Catalogue(plugin_files)
    configs = catalogue.enabled(config.plugin_configs())
    stand_in = config.with_energy(ClusterDescription.flat(1))
    plugins, capabilities = _loaded(config, catalogue, configs, stand_in)
    if not plugins.implementations("schedule"):
        raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
    validated_faults(config.emulation.faults, f"{config.source}: emulation.faults")
    checks += _enabled(plugins, stand_in)
    if config.mode is Mode.DRY_RUN:
        of_cluster = [_trace(config)]
    else:
        if not config.clusters:
            # Of several clusters each has its own, and its adapter says so.
            checks.extend(check for handler in plugins.handlers() for check in handler.check())
        of_cluster, able = _asked(config, catalogue, configs, plugins)
        capabilities = able if able is not None else capabilities
    names = ", ".join(sorted(capability.__name__ for capability in capabilities))
    adapters = ", ".join(dict.fromkeys(cluster.adapter for _, cluster in config.clusters_by_place()))
    checks.append(Check("capabilities", True, f"{adapters}: {names}"))
    checks.append(_journal(config.journal))
    checks.extend(_letters(config.letters))
    checks.extend(of_cluster)
    in_order = all(item.ok or _is_for_later(item, config.mode) for item in checks)
    if as_json:
        from headway.cli.reports import CheckReport

        say_json(CheckReport(config.mode, in_order, tuple(checks)))
    else:
        _show(checks, config.mode)
    if not in_order:
        raise SystemExit(1)


def _enabled(plugins: Plugins, cluster: ClusterDescription) -> list[Check]:
    """Which plugins are there, which of several policies and placements counts, and the energy profile."""
    from headway.adapter import Check

    checks = [Check("plugins", True, ", ".join(plugins.by_name))]
    for what, hook in (("policy", "schedule"), ("placement", "place")):
        first, *others = [name for name, _ in plugins.implementations(hook)] or [""]
        if others:
            later = ", ".join(others)
            checks.append(Check(what, True, f"{first}; only where it gives no answer: {later}"))
    if (profile := cluster.energy) is not None:
        classes = ", ".join(kind.name for kind in profile.classes)
        unit = "" if profile.absolute else "; not calibrated, so its figures are relative"
        checks.append(Check("energy", True, f"profile {profile.name}, classes {classes}{unit}"))
    return checks


def _asked(
    config: Config, catalogue: Catalogue, configs: list[PluginConfig], plugins: Plugins
) -> tuple[list[Check], frozenset[type[Decision]] | None]:
    """The cluster's own checks, and what it can carry out; None: it does not answer."""
    from headway.adapter import Check
    from headway.config import live_adapter

    checks: list[Check] = []
    capabilities = None
    try:
        with live_adapter(config, read_only=True) as adapter:
            adapter.use_handlers(plugins.handlers(), catalogue.gives(configs))
            adapter.tell_words(plugins.job_words)
            if plugins.requiring("policy"):
                adapter.tell_policy()
            own = adapter.check()
            checks.extend(own)
            told = not all(check.ok for check in own)
            lacking = _lacking(plugins, configs, catalogue, adapter)
            checks.extend(lacking)
            checks.extend(_described(config, plugins, adapter, able=not lacking, told=told))
            checks.extend(_suits_no_job(plugins, adapter))
            # The capabilities of this cluster, as far as it could be asked, and not of all clusters of its
            # kind.
            capabilities = adapter.capabilities
    except UserError:
        raise
    except HeadwayError as error:
        checks.append(Check("cluster", False, str(error)))
    return checks, capabilities


def _show(checks: Sequence[Check], mode: Mode) -> None:
    """A line a check; under what is missing what to do about it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for overflow in ("ellipsis", "ellipsis", "fold"):
        table.add_column(overflow=overflow)
    for item in checks:
        word = ("FAIL", "red") if not item.ok else ("ok", "green") if item.known else ("?", "yellow")
        if _is_for_later(item, mode):
            word = ("later", "yellow")
        table.add_row(Text(*word), item.subject, _shown(item.detail))
        if not (item.ok and item.known) and item.remedy:
            table.add_row("", "", f"→ {_shown(item.remedy)}")
    console().print(table)


def _is_for_later(check: Check, mode: Mode) -> bool:
    """Whether it is not in order, and only driving needs it, and headway only watches."""
    from headway.model.modes import Mode

    return mode is Mode.MONITOR and check.driving and not check.ok


def _lacking(
    plugins: Plugins, configs: list[PluginConfig], catalogue: Catalogue, adapter: ClusterAdapter
) -> list[Check]:
    """What a plugin needs and this cluster cannot carry out, though others of its kind can."""
    from headway.adapter import Check
    from headway.plugins import Plugins

    try:
        Plugins.check_needs(configs, catalogue, adapter.capabilities)
    except UserError as error:
        return [
            Check(
                "plugins",
                False,
                str(error),
                "disable that plugin; see what this cluster can do (capabilities)",
            )
        ]
    if not adapter.suspended_lend:
        keeps = "suspends jobs to make room, and this cluster keeps their processors for them"
        return [
            Check("plugins", False, f"plugin {name!r} {keeps}", "use requeue or cancel instead")
            for name in plugins.requiring("lending")
        ]
    return []


def _described(
    config: Config, plugins: Plugins, adapter: ClusterAdapter, *, able: bool, told: bool
) -> list[Check]:
    """What follows from how the cluster describes itself: its pools, and whether plugins can begin there;
    ``able``: it can carry out all that they need. ``told``: its own checks have said what is wrong."""
    from headway.adapter import Check
    from headway.cli.pool_checks import check_pools

    try:
        cluster = adapter.describe()
    except HeadwayError as error:
        return [] if told else [Check("cluster", False, str(error))]
    misfits = _misfits(config, plugins, cluster, adapter.capabilities) if able else []
    return [*misfits, *check_pools(cluster, config.tiers)]


def _misfits(
    config: Config, plugins: Plugins, cluster: ClusterDescription, able: frozenset[type[Decision]]
) -> list[Check]:
    """What a plugin says at a run's begin that its options need and this cluster has not."""
    from headway.adapter import Check
    from headway.scheduler import Scheduler

    try:
        began = Scheduler(cluster, plugins, capabilities=able, tiers=config.tiers)
    except UserError as error:
        return [
            Check(
                "plugins",
                False,
                str(error),
                "change the configuration as the message says, or disable that plugin",
            )
        ]
    return [
        Check(
            "plugins", False, f"plugin {problem.plugin!r} fails at the beginning of a run: {problem.message}"
        )
        for problem in began.problems
    ]


def _loaded(
    config: Config, catalogue: Catalogue, configs: list[PluginConfig], cluster: ClusterDescription
) -> tuple[Plugins, frozenset[type[Decision]]]:
    """The plugins, and what the adapters can carry out as far as the configuration says.

    Raises :class:`UserError` with all that is wrong in the options of clusters and plugins.
    """
    from headway.plugins import Plugins

    mistakes = Mistakes()
    # None: what clusters with wrong options can carry out is unknown.
    capabilities: frozenset[type[Decision]] | None = None
    with mistakes.noted():
        _check_options(config)
        capabilities = config.capabilities(cluster, catalogue.gives(configs))
    with mistakes.noted():
        catalogue.check_energy(configs, cluster)
    plugins = Plugins()
    with mistakes.noted():
        plugins = Plugins.load(configs, catalogue, capabilities)
    mistakes.tell()
    assert capabilities is not None
    return plugins, capabilities


def _check_options(config: Config) -> None:
    """Raise :class:`UserError` with all that is wrong in the options of clusters."""
    from headway.config import live_options
    from headway.model.modes import Mode

    mistakes = Mistakes()
    if config.mode is not Mode.DRY_RUN:
        for where, cluster in config.clusters_by_place():
            with mistakes.noted():
                live_options(config.adapters, cluster, where)
    mistakes.tell()


def _suits_no_job(plugins: Plugins, adapter: ClusterAdapter) -> list[Check]:
    """Migration handlers that are for jobs with an attribute that no job has now."""
    from headway.adapter import Check
    from headway.emulation.live_copy import Copy
    from headway.plugins import traits_of

    asked = [
        (name, word)
        for name, _ in plugins.implementations("migrate")
        for word in sorted(traits_of(plugins.by_name[name]).words)
    ]
    if not asked:
        return []
    try:
        jobs = Copy(adapter).events
    except HeadwayError:
        # It does not answer, and its own checks have said so.
        return []
    said = {word for event in jobs for word in getattr(getattr(event, "job", None), "attributes", None) or ()}
    return [
        Check(
            "migration", True,
            f"{name} applies to no job now: no job has the word {word!r}, so later handlers move the jobs",
            f"users give the word with their jobs, on Slurm: sbatch --comment=headway:{word}", known=False,
        )
        for name, word in asked
        if word not in said
    ]  # fmt: skip


def _shown(text: str) -> str:
    """One short paragraph, whatever a command printed."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _trace(config: Config) -> Check:
    """The trace that `headway run` would run in mode dry-run."""
    from headway.adapter import Check

    if config.emulation.trace is None:
        return Check("trace", True, "none configured; `headway dry-run --trace FILE` names one")
    path = config.trace_path()
    if not path.is_file() or not os.access(path, os.R_OK):
        return Check("trace", False, f"{path}: cannot be read", "correct emulation.trace")
    return Check("trace", True, str(path))


def _journal(url: str) -> Check:
    """Whether the journal can be written, without making it."""
    from headway.adapter import Check
    from headway.journal import Journal

    path = Path(url)
    if may_have_journal(url):
        try:
            with Journal.open(url, create=False, read_only=True) as journal:
                whole = journal.verify()
                runs = len(journal.runs())
        except Damaged as error:
            remedy = "see 'A damaged journal' in the operator's guide: move it away, save what can be read"
            return Check("journal", False, str(error), remedy)
        except HeadwayError as error:
            return Check("journal", False, str(error))
        if "://" not in url and (open_to_all := _open_to_all(path.resolve().parent)):
            return open_to_all
        if "://" not in url and (full := _full(path.resolve().parent)):
            return full
        partly = "" if whole else "; it is large, and damage was looked for in a part of it"
        return Check("journal", True, f"{url}: {runs} {'run' if runs == 1 else 'runs'}{partly}")
    directory = path.resolve().parent
    if not directory.is_dir():
        found = f"{url}: directory {directory} does not exist"
        return Check("journal", False, found, f"mkdir -p {directory}")
    if not os.access(directory, os.W_OK):
        found = f"{url}: directory {directory} is not writable"
        return Check("journal", False, found, "run as the service's user")
    if open_to_all := _open_to_all(directory):
        return open_to_all
    return _full(directory) or Check("journal", True, f"{url}: will be made")


def _letters(letters: LettersConfig) -> list[Check]:
    """Whether the command that delivers letters to users can be run."""
    from headway.adapter import Check

    if not letters.command:
        return []
    program = letters.command[0]
    found = shutil.which(program)
    if found is not None:
        return [Check("letters", True, f"{' '.join(letters.command)} ({found})")]
    if not program.startswith("/"):
        wrong = f"no program {program!r} is in PATH ({os.environ.get('PATH', '')})"
    else:
        wrong = f"{program} {'is not executable' if Path(program).exists() else 'does not exist'}"
    remedy = "install it, or correct letters.command; without it letters to users are lost"
    return [Check("letters", False, wrong, remedy).for_driving()]


def _full(directory: Path) -> Check | None:
    """A failed check if the journal's disk is full, or soon will be."""
    from headway.adapter import Check

    free = shutil.disk_usage(directory).free
    if free >= ENOUGH_SPACE:
        return None
    found = f"{free / 1e6:.0f} MB are free on the disk of {directory}, and the daemon ends when none is left"
    return Check("journal", False, found, f"make room: at least {ENOUGH_SPACE / 1e6:.0f} MB")


def _open_to_all(directory: Path) -> Check | None:
    """A failed check if any user could put another file into the journal's place."""
    from headway.adapter import Check

    mode = directory.stat().st_mode
    if not mode & stat.S_IWOTH or mode & stat.S_ISVTX:
        return None
    found = f"all users can write into {directory}, and so replace the journal"
    return Check("journal", False, found, f"chmod o-w {directory}")
