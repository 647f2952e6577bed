"""``headway init pbs``: what PBS says of itself, and the files with which headway watches and drives it.

Limits of the server and its queues become the plugin ``limits``, as ``headway import`` reads them; the files
of PBS's own scheduler are read where this user may.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from headway.adapter import Check
from headway.adapter.survey import Place, Seen, SiteFile
from headway.errors import Failure, UserError
from headway.inputs.shipped import shipped
from headway.model import ClusterDescription
from headway.plugins import Catalogue
from headway_adapters.pbs import checks as pbs_checks
from headway_adapters.pbs import cluster, fence, values
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.listings import Listings
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.site_import.command import imported
from headway_adapters.site_import.found import Imported, Line, read_lines
from headway_adapters.site_init.asking import bin_dir, from_environment, one_line, options_with, takeable
from headway_adapters.site_init.configuration import Key, configuration, pace
from headway_adapters.site_init.page import (
    Service,
    Step,
    driving_steps,
    first_steps,
    page,
    policy_step,
    watching_steps,
)
from headway_adapters.site_init.unit import unit

#: What is told of the server, in this order.
_TOLD = (
    "pbs_version", "server_host", "server_state", "scheduling", "default_queue", "managers", "operators",
    "job_history_enable", "query_other_jobs", "node_group_key", "backfill_depth",
)  # fmt: skip
#: The files of PBS's scheduler that say which job starts when, below PBS_HOME.
_SCHEDULERS = ("sched_priv/sched_config", "sched_priv/resource_group")
_PBS_CONF = Path("/etc/pbs.conf")
#: What refuses late starts, in etc/pbs.
_HOOK = "headway_fence.py"
_FENCE = Step(
    "The fence",
    "If two daemons ever run, PBS refuses what the earlier one starts late. On the server's host.",
    list(fence.INSTALL),
)


class PbsSurvey:
    """PBS."""

    title = "PBS"
    pools_word = "queues"
    programs = ("qstat", "pbsnodes")

    def folders(self) -> Sequence[Path]:
        said = _pbs_conf().get("PBS_EXEC", "")
        return (*((Path(said) / "bin",) if said else ()), Path("/opt/pbs/bin"), Path("/usr/pbs/bin"))

    def ask(self, options: Mapping[str, Any]) -> AskedPbs:
        reach = {**options, **bin_dir(options, self.folders(), self.programs[0])}
        reach |= from_environment(reach, pbs_conf="PBS_CONF_FILE")
        checked = options_with(PbsOptions, reach, self.pools_word, ["x"])
        with closing(PbsClient(checked, read_only=True)) as client:
            return _asked(client, checked, reach)


class AskedPbs:
    """A PBS that has answered."""

    def __init__(
        self, seen: Seen, server: Mapping[str, Any], queues: Sequence[str], policy: Imported | None
    ) -> None:
        """``queues``: all execution queues; ``policy``: what its scheduler does, if that can be read."""
        self.seen = seen
        self._server = server
        self._queues = queues
        self._policy = policy
        self._torque = seen.title.startswith("Torque")

    def configuration(self, pools: Sequence[str], place: Place) -> str:
        defaults = PbsOptions(queues=tuple(pools))
        keys = [
            Key("queues", list(pools), "jobs of other queues are never touched"),
            Key("flavour", defaults.flavour, "auto, openpbs, pbspro or torque"),
            *pace(defaults, "a started job to run"),
            Key(
                "commands_per_minute",
                defaults.commands_per_minute,
                "each takes a privileged port for a minute",
            ),
        ]
        plugins: list[tuple[Any, str]] = [("easy", "the policy"), ("first-fit", "the placement")]
        if self._policy is not None and "limits" in self._policy.plugins:
            plugins.insert(0, ({"limits": self._policy.plugins["limits"]}, "of the server and its queues"))
        return configuration(self.seen, "pbs", keys, plugins, place)

    def files(
        self, pools: Sequence[str], cluster: ClusterDescription, checks: Sequence[Check], place: Place
    ) -> Sequence[SiteFile]:
        service = Service.of(place, "headway")
        text = unit(
            service, after=["pbs.service"], about_user=["A user that PBS knows as a manager (README.md)."]
        )
        told = page(self.seen, cluster, pools, "queues", checks, self._steps(pools, service))
        return [SiteFile("headway.service", text), *self._hook(), SiteFile("README.md", told)]

    def _hook(self) -> list[SiteFile]:
        """What refuses late starts; nothing for Torque, which has no hooks."""
        if self._torque:
            return []
        path = shipped(f"pbs/{_HOOK}")
        try:
            return [SiteFile(_HOOK, path.read_text(encoding="utf-8"))]
        except OSError as error:
            raise Failure(f"{path}: the hook cannot be read: {error.strerror or error}") from error

    def _steps(self, pools: Sequence[str], service: Service) -> list[Step]:
        steps = [*first_steps(service), *watching_steps(service, "PBS", "server scheduling, privilege")]
        if not values.truth(self._server.get("query_other_jobs"), True):
            steps.insert(len(steps) - 3, Step(
                "Let headway see all users' jobs", "Without this it sees its own alone.",
                [_qmgr("set server query_other_jobs = True")],
            ))  # fmt: skip
        left = [str(remark) for remark in self._policy.ordered()] if self._policy is not None else []
        home = shlex.quote(_pbs_conf().get("PBS_HOME", "/var/spool/pbs"))
        steps.append(policy_step(
            "`plugins` of headway.yaml has the limits of PBS's server and queues, and `easy` in the place "
            "of its order and shares.", left,
            [f"cp {home}/sched_priv/sched_config {home}/sched_priv/resource_group .",
             'qmgr -c "print server" > qmgr.txt',
             f"{shlex.quote(service.place.program)} import pbs sched_config resource_group qmgr.txt "
             "--out imported.yaml"],
        ))  # fmt: skip
        return steps + self._driving(pools, service)

    def _driving(self, pools: Sequence[str], service: Service) -> list[Step]:
        rights = [_qmgr(f"set server managers += {service.user}@{socket.getfqdn()}")]
        if not values.truth(self._server.get("job_history_enable")):
            rights.append(_qmgr("set server job_history_enable = True"))
        others = [name for name in self._queues if name not in pools]
        waiting = (
            f" **Jobs of {', '.join(others)} wait, too**, since the server's scheduling is one for all "
            "queues: take them "
            "with `--queues`, or start them by hand."
            if others else ""
        )  # fmt: skip
        off, on = _qmgr("set server scheduling = False"), _qmgr("set server scheduling = True")
        return [
            Step(
                "Rights, and a memory of ended jobs",
                "A manager may start, alter and suspend jobs. On the server's host; both can stay for ever.",
                rights,
            ),
            *([] if self._torque else [_FENCE]),
            *driving_steps(
                service,
                f"From the first line on PBS starts nothing by itself; running jobs run on.{waiting}",
                [off], f"qsub -q {pools[0]} -l select=1:ncpus=1 -l walltime=00:01:00 -- /bin/sleep 10",
                "Running jobs run on, and PBS's next cycle starts what waits.", [on],
            ),
        ]  # fmt: skip


def _asked(client: PbsClient, options: PbsOptions, reach: dict[str, Any]) -> AskedPbs:
    remarks: list[str] = []
    (version,) = client.run_many([("qstat", "--version")])
    torque = pbs_checks.flavour_of(version, options) == "torque"
    listings = Listings(client, torque=torque)
    server_out, queues_out = client.look(
        [("qstat", "-B", "-f", *listings.form), ("qstat", "-Q", "-f", *listings.form)]
    )
    notes: set[str] = set()
    servers = listings.objects(server_out, "Server", notes)
    if not servers:
        raise Failure(f"qstat -B: expected a server, found {one_line(server_out.text) or 'nothing'!r:.80}")
    name, server = next(iter(servers.items()))
    queues = cluster.read_queues(listings.objects(queues_out, "Queue", notes))
    if not queues:
        raise Failure("qstat -Q: expected execution queues, found none")
    ours = [queue.name for queue in queues.values() if not queue.of_reservation]
    default = [one for one in [values.text(server.get("default_queue"))] if one in ours]
    names = takeable([*default, *ours], PbsSurvey.pools_word, PbsOptions, remarks)
    settings = {key: one_line(said) for key in _TOLD if (said := values.text(server.get(key)))}
    said = one_line(f"{version.text} {version.stderr}")
    number = re.search(r"[0-9]+(?:\.[0-9]+)+", said)
    title = f"{'Torque' if torque else 'PBS'} {number.group() if number else ''}".strip()
    remarks += [one_line(note) for note in sorted(notes)]
    policy = None if torque else _policy(client, remarks)
    seen = Seen(title, one_line(name), client.user, tuple(names), settings, reach, tuple(remarks))
    return AskedPbs(seen, server, ours, policy)


def _policy(client: PbsClient, remarks: list[str]) -> Imported:
    """What PBS's scheduler goes by, as far as it can be read from here."""
    asked = [("qstat", "-B", "-f"), ("qstat", "-Q", "-f")]
    texts = [
        [Line(" ".join(result.argv), number, line) for number, line in enumerate(result.text.split("\n"), 1)]
        for result in client.look(asked)
    ]
    home = Path(_pbs_conf().get("PBS_HOME", "/var/spool/pbs"))
    for name in _SCHEDULERS if not client.where else ():
        try:
            if (home / name).exists():
                texts.append(read_lines(home / name))
        except (OSError, UserError):
            remarks.append(f"{home / name} cannot be read here: `headway import pbs` reads it as root")
    return imported("pbs", texts, Catalogue())


def _pbs_conf() -> dict[str, str]:
    """PBS's own file on this machine; empty where there is none."""
    path = Path(os.environ.get("PBS_CONF_FILE") or _PBS_CONF)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _qmgr(said: str) -> str:
    return f"qmgr -c {shlex.quote(said)}" if '"' in said or "$" in said else f'qmgr -c "{said}"'
