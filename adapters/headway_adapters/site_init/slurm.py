"""``headway init slurm``: what Slurm says of itself, and the files with which headway watches and drives it.

The plugins do what Slurm's own scheduler does now, as ``headway import`` reads it from the running Slurm;
accounts, weights and limits follow slurmdbd (``from-slurm``) where it answers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from headway.adapter import Check
from headway.adapter.survey import Place, Seen, SiteFile
from headway.errors import Failure
from headway.inputs.shipped import shipped
from headway.model import ClusterDescription
from headway.plugins import Catalogue
from headway_adapters.site_import.command import imported
from headway_adapters.site_import.found import Imported, Line
from headway_adapters.site_init.asking import (
    bin_dir,
    from_environment,
    one_line,
    options_with,
    takeable,
)
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
from headway_adapters.site_init.unit import GIVE_BACK, give_back_units, unit
from headway_adapters.slurm import checks as slurm_checks
from headway_adapters.slurm import reader
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions

_FILTER = "job_submit.lua"
_LINES = "slurm.conf.headway"
#: What the unit makes (RuntimeDirectory).
_RUN = Path("/run/headway")
_HEARD = re.compile(r'^local HEARTBEAT = "[^"]*"$', re.MULTILINE)
_FENCE = re.compile(r'^local FENCE = "[^"]*"$', re.MULTILINE)
_LEADERS = re.compile(r"^local LEADERS = \{[^}]*\}$", re.MULTILINE)
#: Slurm's user with its number, and a folder whose name is no more than that.
_NUMBERED = re.compile(r"[^()]*\(([0-9]{1,10})\)")
_PLAIN_FOLDER = re.compile(r"(/[A-Za-z0-9_.+@-]+)+/?")
_MANAGED = re.compile(r"^local MANAGED = \{[^}]*\}$", re.MULTILINE)
#: What is told of the configuration, in this order.
_TOLD = (
    "SLURM_CONF", "SlurmctldHost[0]", "SlurmUser", "SchedulerType", "SchedulerParameters", "SelectType",
    "SelectTypeParameters", "PriorityType", "PreemptType", "JobSubmitPlugins", "AccountingStorageType",
    "AccountingStorageEnforce", "GresTypes", "PrivateData", "MinJobAge", "SuspendProgram", "TopologyPlugin",
)  # fmt: skip
_NOTHING = ("", "(null)", "none", "N/A")
#: How long Slurm is to list jobs that ended, seconds.
_REMEMBERED = 300
#: What `check` may say `later` of.
_LATER = "privilege, SchedulerType, batch_sched_delay, jobs enter held, failing open"


class SlurmSurvey:
    """Slurm."""

    title = "Slurm"
    pools_word = "partitions"
    programs = ("squeue", "sinfo", "scontrol")

    def folders(self) -> Sequence[Path]:
        return (Path("/opt/slurm/bin"), Path("/usr/local/slurm/bin"), Path("/opt/slurm/current/bin"))

    def ask(self, options: Mapping[str, Any]) -> AskedSlurm:
        reach = {**options, **bin_dir(options, self.folders(), self.programs[0])}
        reach |= from_environment(reach, slurm_conf="SLURM_CONF")
        checked = options_with(SlurmOptions, reach, self.pools_word, ["x"])
        with closing(SlurmClient(checked, read_only=True)) as client:
            return _asked(client, reach)


class AskedSlurm:
    """A Slurm that has answered."""

    def __init__(self, seen: Seen, config: Mapping[str, str], policy: Imported, accounts: bool) -> None:
        """``policy``: what its scheduler does now; ``accounts``: its slurmdbd answers."""
        self.seen = seen
        self._config = config
        self._policy = policy
        self._accounts = accounts

    def configuration(self, pools: Sequence[str], place: Place) -> str:
        defaults = SlurmOptions(partitions=tuple(pools))
        keys = [
            Key("partitions", list(pools), "jobs of other partitions are never touched"),
            *pace(defaults, "a released job to start"),
            Key("accounting", "yes" if self._accounts else "auto", "look ended jobs up with sacct"),
            Key(
                "hold_marker", defaults.hold_marker, 'AdminComment="hold: why" keeps headway away from a job'
            ),
            *self._heartbeat(place, defaults.patience),
            Key("show_starts", False, "true: `squeue --start` shows planned starts, when headway drives"),
        ]
        return configuration(self.seen, "slurm", keys, self._plugins(), place)

    def _heartbeat(self, place: Place, patience: int) -> list[Key]:
        path = heartbeat(self.seen, place)
        if not path:
            return []
        about = f"as HEARTBEAT in {_FILTER}: headway says there that it drives"
        return [Key("heartbeat", path, about), Key("patience", patience, "seconds, as PATIENCE there")]

    def _plugins(self) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = []
        plugins = dict(self._policy.plugins)
        if self._accounts and _limits_are_kept(self._config):
            # Slurm's own bounds of partitions hold without the plugin.
            limits = {"of": "from-slurm"}
            plugins = {"limits": limits} | plugins | {"limits": limits}
        for name, options in plugins.items():
            if self._accounts and name in ("fair-tree", "classic"):
                kept = {key: options[key] for key in ("reset", "billing", "dampening") if key in options}
                ties = {"ties": "as-slurm"} if name == "fair-tree" else {}
                options = dict[str, Any](accounts="from-slurm") | ties | kept
            elif self._accounts and name == "multifactor":
                options = {"weights": "from-slurm"}
            found.append(({name: options} if options else name, _ABOUT.get(name, "")))
        return found

    def files(
        self, pools: Sequence[str], cluster: ClusterDescription, checks: Sequence[Check], place: Place
    ) -> Sequence[SiteFile]:
        # Without accounting Slurm knows no other administrators than its own user.
        slurm_user = self._config.get("SlurmUser", "").partition("(")[0] or "slurm"
        has_levels = self._accounting()
        service = Service.of(place, "headway" if has_levels else slurm_user)
        about = [
            "An account that Slurm knows as Administrator (README.md); Operator is not enough."
            if has_levels else "SlurmUser: without slurmdbd Slurm knows no other administrator."
        ]  # fmt: skip
        after = ["munge.service", "slurmctld.service"]
        text = unit(service, after=after, about_user=about)
        units = give_back_units(service, after=after) if heartbeat(self.seen, place) else []
        steps = self._steps(pools, service, has_levels)
        return [
            SiteFile("headway.service", text),
            *units,
            SiteFile(_FILTER, submit_filter(pools, heartbeat(self.seen, place), self._config)),
            SiteFile(_LINES, self._lines()),
            SiteFile("README.md", page(self.seen, cluster, pools, "partitions", checks, steps)),
        ]

    def _accounting(self) -> bool:
        return self._config.get("AccountingStorageType", "").endswith("slurmdbd")

    def _folder(self) -> str:
        """Where slurm.conf and the filter are, on slurmctld's host."""
        return str(Path(self._config.get("SLURM_CONF") or "/etc/slurm/slurm.conf").parent)

    def _lines(self) -> str:
        """What slurm.conf needs before headway drives, with what it says already."""
        plugins = [word for word in _words(self._config, "JobSubmitPlugins") if word != "lua"]
        parameters = [
            word for word in _words(self._config, "SchedulerParameters")
            if not word.startswith("batch_sched_delay=")
        ]  # fmt: skip
        lines = [
            "# For slurm.conf, before headway drives: these lines instead of the ones with the same keys.",
            "# Without the delay starts come up to 3 s late.",
            f"SchedulerParameters={','.join([*parameters, 'batch_sched_delay=0'])}",
            "# Jobs of headway's partitions enter held (job_submit.lua, beside slurm.conf).",
            f"JobSubmitPlugins={','.join([*plugins, 'lua'])}",
        ]
        age = re.match(r"[0-9]+", self._config.get("MinJobAge", ""))
        if age is not None and 0 < int(age.group()) < _REMEMBERED:
            lines += [
                f"# Ended jobs stay listed so long (now {age.group()} s): headway must see them end.",
                f"MinJobAge={_REMEMBERED}",
            ]
        kind = self._config.get("SchedulerType", "")
        if kind not in ("sched/builtin", "sched/backfill"):
            lines += [
                f"# {one_line(kind)} is not a scheduler that headway knows.",
                "SchedulerType=sched/builtin",
            ]
        return "\n".join(lines) + "\n"

    def _steps(self, pools: Sequence[str], service: Service, has_levels: bool) -> list[Step]:
        steps = first_steps(service, *(GIVE_BACK if heartbeat(self.seen, service.place) else ()))
        if has_levels:
            name = shlex.quote(service.user)
            steps.insert(
                len(steps) - 1,
                Step(
                    f"Make {service.user} an administrator of Slurm",
                    "Only an administrator may write `AdminComment`, where headway keeps what it must "
                    "know after a "
                    "crash. To watch, it needs no right"
                    + ("." if not _hides_jobs(self._config) else ", but for `PrivateData=jobs`."),
                    [f"sacctmgr -i add user {name} account=root AdminLevel=Administrator",
                     f"sacctmgr -i modify user {name} set AdminLevel=Administrator"],
                ),
            )  # fmt: skip
        steps += watching_steps(service, "Slurm", _LATER)
        steps.append(self._policy_step(service))
        steps += self._driving_steps(pools, service)
        return steps

    def _policy_step(self, service: Service) -> Step:
        conf = shlex.quote(self._config.get("SLURM_CONF") or "/etc/slurm/slurm.conf")
        commands = [f"cp {conf} slurm.conf"]
        files = "slurm.conf"
        if self._accounting():
            commands += [
                f"sacctmgr dump {shlex.quote(self.seen.cluster)} file=slurm.dump",
                "sacctmgr -P show qos > qos.txt",
            ]
            files += " slurm.dump qos.txt"
        commands.append(f"{shlex.quote(service.place.program)} import slurm {files} --out imported.yaml")
        about = "`plugins` of headway.yaml does what Slurm's scheduler does now, as far as Slurm tells."
        # Which accounts there are follows slurmdbd.
        left = [
            str(remark) for remark in self._policy.ordered()
            if not (self._accounts and "no accounts were given" in remark.why)
        ]  # fmt: skip
        return policy_step(about, left, commands)

    def _driving_steps(self, pools: Sequence[str], service: Service) -> list[Step]:
        folder = self._folder()
        conf, script = f"{folder}/slurm.conf", shlex.quote(f"{folder}/{_FILTER}")
        managed = ",".join(pools)
        has_filter = "lua" in _words(self._config, "JobSubmitPlugins")
        mine = (
            f" **There is a `{_FILTER}` already (JobSubmitPlugins has `lua`)**: Slurm loads one script, "
            "so put both "
            "functions of headway's into yours, behind what yours does, instead of the first line."
            if has_filter else ""
        )  # fmt: skip
        controller = one_line(self._config.get("SlurmctldHost[0]", "slurmctld's host"))
        # SlurmUser is in the filter already, and a user that is made by an earlier step has no number yet.
        knows = [] if service.user in ("root", self._config.get("SlurmUser", "").partition("(")[0]) else [
            f'sed -i "s/^local LEADERS = {{ /&[$(id -u {shlex.quote(service.user)})] = true, /" {_FILTER}'
        ]  # fmt: skip
        return [
            Step(
                "Slurm's set-up and the submit filter",
                f"On {controller}. Put the lines of `{_LINES}` into `{conf}`. **From the restart until "
                "headway drives, "
                f"new jobs of {managed} wait**; running jobs run on.{mine}",
                [*knows, f"install -m 644 {_FILTER} {script}", "systemctl restart slurmctld",
                 "scontrol show config | grep -E 'JobSubmitPlugins|SchedulerParameters'"],
            ),
            *driving_steps(
                service, "", [], f"sbatch -p {pools[0]} -n1 -t1 -o /dev/null --wrap 'sleep 10'",
                "Running jobs run on, and Slurm starts the others. The second line empties the filter.",
                [f"sed -i 's/^local MANAGED = .*/local MANAGED = {{}}/' {script}", f"squeue -p {managed} "
                "-t PD -o '%i %r'"],
                timer=GIVE_BACK[1] if heartbeat(self.seen, service.place) else "",
            ),
        ]  # fmt: skip


#: What the plugins are, beside them.
_ABOUT = {
    "fair-tree": "shares and usage, as sshare has them",
    "classic": "shares and usage, as sshare has them",
    "multifactor": "priorities, as sprio has them",
    "limits": "of accounts, users, QOS and partitions",
    "preemption": "which jobs give way",
    "conservative": "the policy: as Slurm's backfill, a booking for each job that it looks at",
    "strict": "the policy: as sched/builtin, in order",
    "first-fit": "the placement: the first nodes that fit",
}


def _asked(client: SlurmClient, reach: dict[str, Any]) -> AskedSlurm:
    remarks: list[str] = []
    version, shown, listed, nodes = client.look(
        [("squeue", "--version"), ("scontrol", "show", "config"),
         ("scontrol", "-o", "show", "partition", "-a"), ("scontrol", "-o", "show", "node", "-a")]
    )  # fmt: skip
    config = reader.config(shown.text)
    partitions = reader.read_partitions(listed.text)
    for result, found in ((shown, config), (listed, partitions)):
        if not found:
            said = one_line(result.text) or "nothing"
            raise Failure(f"{' '.join(result.argv[:4])}: expected Slurm's listing, found {said!r:.80}")
    if slurm_checks.version_of(version.text) < slurm_checks.OLDEST:
        remarks.append(f"headway needs Slurm 21.08 or later, found {one_line(version.text) or 'no version'}")
    default = re.findall(r"^PartitionName=(\S+) .*\bDefault=YES\b", listed.text, re.MULTILINE)
    names = takeable([*default, *partitions], SlurmSurvey.pools_word, SlurmOptions, remarks)
    settings = {key: one_line(config[key]) for key in _TOLD if config.get(key, "") not in _NOTHING}
    accounts = False
    if config.get("AccountingStorageType", "").endswith("slurmdbd"):
        asked = client.run(("sacctmgr", "-n", "-P", "show", "cluster", "format=Cluster"))
        accounts = asked.ok
        settings["slurmdbd"] = "answers" if asked.ok else "does not answer"
        if not asked.ok:
            remarks.append(
                f"slurmdbd does not answer ({one_line(asked.complaint())}): the plugins go without "
                "accounts and "
                "limits until `headway init` is called again"
            )
    texts = [_lines_of(result.text, " ".join(result.argv)) for result in (shown, listed, nodes)]
    policy = imported("slurm", texts, Catalogue())
    title = f"Slurm {one_line(version.text).rpartition(' ')[2]}".strip()
    cluster = one_line(config.get("ClusterName", "slurm"))
    seen = Seen(title, cluster, client.user, tuple(names), settings, reach, tuple(remarks))
    return AskedSlurm(seen, config, policy, accounts)


def heartbeat(seen: Seen, place: Place) -> str:
    """Where headway says that it drives, beside its socket in the folder that the unit makes; "" where
    slurmctld may be on another machine."""
    folder = Path(place.socket).parent
    return str(folder / "heartbeat") if folder == _RUN and "ssh" not in seen.options else ""


def submit_filter(pools: Sequence[str], heard: str, config: Mapping[str, str]) -> str:
    """The shipped filter with these partitions and this heartbeat ("": none), for the cluster of this
    ``config``."""
    path = shipped(f"slurm/{_FILTER}")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: the shipped filter cannot be read: {error.strerror or error}") from error
    table = ", ".join(f'["{name}"] = true' for name in pools)
    text = _replaced(text, _MANAGED, f"local MANAGED = {{ {table} }}", path)
    state = config.get("StateSaveLocation", "")
    if _PLAIN_FOLDER.fullmatch(state):
        text = _replaced(text, _FENCE, f'local FENCE = "{state.rstrip("/")}/headway.epoch"', path)
    if (user := _NUMBERED.fullmatch(config.get("SlurmUser", ""))) is not None and int(user[1]):
        text = _replaced(text, _LEADERS, f"local LEADERS = {{ [0] = true, [{int(user[1])}] = true }}", path)
    return _replaced(text, _HEARD, f'local HEARTBEAT = "{heard}"', path)


def _replaced(text: str, pattern: re.Pattern[str], line: str, path: Path) -> str:
    text, count = pattern.subn(lambda _: line, text)
    if count != 1:
        raise Failure(f"{path}: expected one line `{pattern.pattern}`, found {count}")
    return text


def _lines_of(text: str, what: str) -> list[Line]:
    return [Line(what, number, line) for number, line in enumerate(text.split("\n"), 1)]


def _words(config: Mapping[str, str], key: str) -> list[str]:
    """A list with commas, without Slurm's words for nothing."""
    value = config.get(key, "")
    return [] if value in _NOTHING else [word for word in value.split(",") if word]


def _limits_are_kept(config: Mapping[str, str]) -> bool:
    """Whether Slurm keeps the limits of accounts and QOS."""
    enforced = {word.strip().lower() for word in _words(config, "AccountingStorageEnforce")}
    return bool(enforced & {"limits", "safe", "all"})


def _hides_jobs(config: Mapping[str, str]) -> bool:
    return "jobs" in _words(config, "PrivateData")
