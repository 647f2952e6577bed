"""``headway init``: the files with which headway begins beside a batch system, from its own words."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import examples, messages, prepare_directory, say
from headway.cli.log_output import set_up_log
from headway.errors import Failure, HeadwayError, UserError
from headway.inputs.settings import parsed_settings

if TYPE_CHECKING:
    from headway.adapter import Check
    from headway.adapter.survey import Asked, SiteFile, Survey
    from headway.cli.surveyed import PoolFound, Surveyed
    from headway.model import ClusterDescription

#: Folders that the unit's service does not see, or that are gone some day.
_NOT_OF_A_SERVICE = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
#: Where headway goes if it runs from one of these.
_PROGRAM = "/opt/headway/bin/headway"
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?")


@click.command(
    "init",
    epilog=examples(
        "headway init                                   beside the batch system of this machine",
        "headway init slurm --partitions debug,gpu",
        "headway init pbs --set bin_dir=/opt/pbs/bin --out site",
        "headway init slurm --set 'ssh={host: login.example.org, user: headway}'",
    ),
)
@click.argument("system", required=False)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("headway-site"),
              show_default=True, metavar="DIR",
              help="Folder for the files; none of them may exist.")  # fmt: skip
@click.option("--partitions", "--queues", "pools", metavar="A,B",
              help="The partitions or queues that headway takes. Default: all.")  # fmt: skip
@click.option("--user", metavar="NAME",
              help="The user that headway is to run as. Default: headway, or the batch system's own user "
                   "where no other user can drive it.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the adapter, such as bin_dir or ssh. Repeatable.")  # fmt: skip
@json_option("headway.cli.surveyed:Surveyed", "Print what was found as JSON.")
def command(
    system: str | None,
    out: Path,
    pools: str | None,
    user: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Ask the cluster what it is, and write what headway needs to begin there: configuration, unit, submit
    filter, and README.md, which tells what to do, step by step.

    SYSTEM is slurm, pbs or lsf; without it, the batch system whose commands are here. Nothing on the cluster
    is changed: the configuration is for mode monitor.
    """
    from headway.adapter.survey import CONFIGURATION, Place, SiteFile
    from headway.config import LogConfig

    set_up_log(LogConfig(level="warning"))
    options = parsed_settings(settings)
    if user is not None and _USER.fullmatch(user) is None:
        raise UserError(f"--user: expected the name of a user, found {user!r}")
    name, survey, asked = _chosen(system, options)
    program, installed = _program()
    place = Place(program, installed, user or "")
    managed = _managed(asked, survey, pools)
    text = asked.configuration(managed, place)
    cluster, checks = _tried(text, out / CONFIGURATION)
    groups = _groups(cluster, managed)
    if pools is None and len(groups) > 1 and not as_json and sys.stdin.isatty():
        managed = _managed(asked, survey, _asked_which(survey, groups))
        text = asked.configuration(managed, place)
        cluster, checks = _tried(text, out / CONFIGURATION)
    files = [SiteFile(CONFIGURATION, text), _schema(), *asked.files(managed, cluster, checks, place)]
    _write(out, files)
    report = _report(name, asked, managed, cluster, checks, out, files)
    if as_json:
        say_json(report)
    else:
        _tell(report, survey)


def _chosen(system: str | None, options: Mapping[str, Any]) -> tuple[str, Survey, Asked]:
    """The batch system that is meant, and its answers."""
    from headway.adapter.survey import survey_of, surveys

    if system is not None:
        survey = survey_of(system)
        return system, survey, survey.ask(options)
    known = surveys()
    if "ssh" in options:
        raise UserError(f"expected the system's name beside --set ssh: headway init {'|'.join(known)}")
    here = {name: survey for name, survey in known.items() if _is_here(survey, options)}
    if not here:
        looked = ", ".join(f"{survey.title}: {survey.programs[0]}" for survey in known.values())
        raise UserError(
            f"expected a batch system's commands on this machine, found none ({looked}). Say where they are, "
            f"such as: headway init {next(iter(known), 'slurm')} --set bin_dir=DIR, or --set "
            f"'ssh={{host: NAME}}'"
        )
    answers: dict[str, Asked] = {}
    silent: list[str] = []
    for name, survey in here.items():
        try:
            answers[name] = survey.ask(options)
        except Failure as error:
            silent.append(f"{survey.title}: {error}")
    for said in silent:
        say(f"does not answer: {said}", messages(), style="yellow")
    if not answers:
        raise Failure("none of the batch systems whose commands are here answers")
    name = _asked_for("system", list(answers)) if len(answers) > 1 else next(iter(answers))
    return name, here[name], answers[name]


def _is_here(survey: Survey, options: Mapping[str, Any]) -> bool:
    if "bin_dir" in options:
        return shutil.which(survey.programs[0], path=str(options["bin_dir"])) is not None
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, survey.folders())])
    return shutil.which(survey.programs[0], path=path) is not None


def _asked_for(what: str, known: Sequence[str]) -> str:
    """Which of several; asked for on a terminal alone."""
    if not sys.stdin.isatty():
        raise UserError(f"several answer here: say which {what}: headway init {'|'.join(known)}")
    chosen: str = click.prompt(f"Which {what}?", type=click.Choice(list(known)), err=True)
    return chosen


def _asked_which(survey: Survey, groups: Sequence[Sequence[str]]) -> str | None:
    """Which pools, where they do not all share nodes; None: all."""
    say(
        f"{survey.pools_word} that share nodes: {'; '.join(', '.join(group) for group in groups)}", messages()
    )
    asked: str = click.prompt(
        f"Which {survey.pools_word}, with commas between them?", default="all", err=True
    )
    return None if asked.strip() == "all" else asked


def _managed(asked: Asked, survey: Survey, pools: str | None) -> list[str]:
    """The pools that were asked for, in the batch system's order; all where none were."""
    from headway.errors import nearest

    known = asked.seen.pools
    if pools is None:
        return list(known)
    wanted = list(dict.fromkeys(name.strip() for name in pools.split(",") if name.strip()))
    if not wanted:
        raise UserError(f"--{survey.pools_word}: expected names such as {known[0]}, found none")
    for name in wanted:
        if name not in known:
            raise UserError(
                f"--{survey.pools_word}: {survey.title} has no {name!r} that headway "
                f"takes.{nearest(name, known)}"
            )
    return [name for name in known if name in wanted]


def _tried(text: str, source: Path) -> tuple[ClusterDescription, list[Check]]:
    """The configuration as `headway check` reads it, and what the cluster answers by it.

    Raises :class:`HeadwayError` if the configuration is wrong, or the cluster does not answer.
    """
    from headway.config import live_adapter, parse_config
    from headway.plugins import Catalogue, Plugins

    config = parse_config(text, str(source))
    catalogue = Catalogue()
    plugins = Plugins.load(catalogue.enabled(config.plugin_configs()), catalogue, None)
    with live_adapter(config, read_only=True) as adapter:
        adapter.tell_words(plugins.job_words)
        if plugins.requiring("policy"):
            adapter.tell_policy()
        checks = list(adapter.check())
        try:
            cluster = adapter.describe()
        except HeadwayError as error:
            undone = "".join(
                f"; {one.subject}: {one.detail}" for one in checks if not one.ok and not one.driving
            )
            raise Failure(f"{config.cluster.adapter}: {error}{undone}") from error
    return cluster, checks


def _groups(cluster: ClusterDescription, pools: Sequence[str]) -> list[list[str]]:
    """The pools, those together that share nodes."""
    groups: list[set[str]] = [{name} for name in pools]
    for node in cluster.nodes:
        touched = [group for group in groups if group.intersection(node.pools)]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched] + [set().union(*touched)]
    return [[name for name in pools if name in group] for group in groups]


def _program() -> tuple[str, bool]:
    """The program for the unit, and whether it is there for a service."""
    # A system's interpreter puts what pip installs elsewhere than what its packages bring.
    folders = (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent)
    path = next((one for folder in folders if (one := folder / "headway").is_file()), None)
    if path is None:
        return _PROGRAM, False
    for folder in (path, path.resolve(), Path(sys.prefix), Path(sys.base_prefix)):
        if str(folder).startswith(tuple(f"{one}/" for one in _NOT_OF_A_SERVICE)):
            return _PROGRAM, False
    if not all(parent.stat().st_mode & 0o001 for parent in path.parents):
        return _PROGRAM, False
    return str(path), True


def _write(folder: Path, files: Sequence[SiteFile]) -> None:
    """All of them, where none is there yet."""
    prepare_directory(folder)
    there = [file.name for file in files if os.path.lexists(folder / file.name)]
    if there:
        raise UserError(
            f"--out {folder}: expected a folder without {', '.join(there)}; nothing is overwritten"
        )
    for file in files:
        try:
            with open(folder / file.name, "x", encoding="utf-8", newline="") as stream:
                stream.write(file.text)
        except OSError as error:
            raise Failure(f"{folder / file.name}: cannot be written: {error.strerror or error}") from error


def _schema() -> SiteFile:
    from headway.adapter.survey import SCHEMA, SiteFile
    from headway.config import INSTALLED
    from headway.config.schema import configuration_schema
    from headway.plugins import Catalogue

    return SiteFile(
        SCHEMA, json.dumps(configuration_schema(Catalogue(), INSTALLED), ensure_ascii=False) + "\n"
    )


def _report(
    name: str, asked: Asked, managed: Sequence[str], cluster: ClusterDescription, checks: Sequence[Check],
    folder: Path, files: Sequence[SiteFile],
) -> Surveyed:  # fmt: skip
    from headway.cli.surveyed import Surveyed

    seen = asked.seen
    described = [pool.name for pool in cluster.pools]
    order = dict.fromkeys([*(pool for pool in seen.pools if pool in described), *described])
    return Surveyed(
        name, seen.title, seen.cluster, seen.user, tuple(_pool(pool, cluster, managed) for pool in order),
        dict(seen.settings), seen.remarks, tuple(checks), str(folder), tuple(file.name for file in files),
    )  # fmt: skip


def _pool(name: str, cluster: ClusterDescription, managed: Sequence[str]) -> PoolFound:
    from headway.cli.surveyed import PoolFound

    nodes = [node for node in cluster.nodes if name in node.pools]
    resources: Counter[str] = Counter()
    for node in nodes:
        resources.update(dict(node.gres))
    (described,) = (pool for pool in cluster.pools if pool.name == name)
    others = {pool for node in nodes for pool in node.pools} - {name}
    return PoolFound(
        name, len(nodes), sum(node.available for node in nodes), sum(node.processors for node in nodes),
        dict(sorted(resources.items())), described.max_walltime or None, described.open, name in managed,
        tuple(sorted(others)),
    )  # fmt: skip


def _tell(report: Surveyed, survey: Survey) -> None:
    say(f"{report.title}, cluster {report.cluster}, asked as {report.asked_as}; nothing was changed")
    for pool in report.pools:
        more = "".join(f", {amount} {kind}" for kind, amount in pool.resources.items())
        limit = f", jobs of at most {pool.max_walltime / 3600:g} h" if pool.max_walltime else ""
        whose = "" if pool.managed else "; not headway's"
        nodes = f"{pool.nodes} nodes ({pool.usable} usable), {pool.processors} processors{more}{limit}"
        say(f"  {survey.pools_word.removesuffix('s')} {pool.name}: {nodes}{whose}")
    for remark in report.remarks:
        say(remark, messages(), style="yellow")
    later = [check.subject for check in report.checks if not check.ok and check.driving]
    wrong = [check for check in report.checks if not check.ok and not check.driving]
    if later:
        say(f"before headway drives, these are to be set in order: {', '.join(later)}")
    for check in wrong:
        say(f"{check.subject}: {check.detail}", messages(), style="red")
    say(f"{report.folder}: {', '.join(report.files)}")
    say(f"Begin with {report.folder}/README.md.")
