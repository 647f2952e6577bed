"""Whether jobs enter held: what ``headway check`` finds out about the submit filter in slurmctld.

What counts is the script that slurmctld has loaded, and Slurm does not tell which script that is. What 22.05
and 24.11 were seen to do:

* slurmctld loads the file when it starts, and does not start with a file that is missing or broken. 24.11
  starts anew, with a new ``BOOT_TIME``, at each ``scontrol reconfigure``. So a file that is older than
  ``BOOT_TIME`` is loaded.
* At each submission it loads a file whose time of modification is later, in whole seconds, than its last
  loading. A file that came with an older time (``cp -p``, ``rsync -t``, ``mv``, a package) is not loaded, by
  22.05 not at ``scontrol reconfigure`` either.
* Of a file that is broken or gone it says so in its log, and goes on with the script before it.

So the time counts at which the file became what it is (``ctime``, which no user sets). Where that is not
before ``BOOT_TIME``, or cannot be seen from here, the jobs that came since then tell: the shipped script
marks each job that it holds. Such a job shows that a script of headway's was loaded, and not which version.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headway.adapter import Check
from headway.errors import Failure
from headway.inputs.shipped import shipped
from headway_adapters.slurm import failing_open, fence, marker, reader, values
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions

_SUBJECT = "jobs enter held"
#: Where the shipped script is, in ``etc/``.
_SHIPPED = "slurm/job_submit.lua"
_COMMENT = re.compile(r"--[^\n]*")
#: A partition in one of the script's tables: ``batch = true`` or ``["my-batch"] = true``.
_NAME = re.compile(r"""([A-Za-z0-9_.-]+)["']?\]?\s*=\s*true""")
_CONTROLLER = re.compile(r"\bat (\S+) is UP")
_SUBMIT = "sbatch -p {} -n1 --begin=now+1hour --wrap true"


@dataclass(frozen=True)
class Script:
    """The file that slurmctld loads its script from, as far as it can be seen from here."""

    path: Path
    #: Empty if it cannot be read from here.
    text: str = ""
    #: It is not there, on the machine where slurmctld runs.
    gone: bool = False
    #: When it became what it is, seconds since the epoch; None where the file here need not be slurmctld's.
    changed: float | None = None


@dataclass(frozen=True)
class Witness:
    """A job that shows whether the loaded script holds the jobs of a partition."""

    #: Seconds since the epoch, and the job's number: the order of submission.
    submitted: float
    job: int
    held: bool


def check(client: SlurmClient, config: Mapping[str, str], options: SlurmOptions, ping: str) -> list[Check]:
    """The lines of ``headway check``, from what ``scontrol show config`` and ``scontrol ping`` said."""
    plugins = config.get("JobSubmitPlugins", "")
    if "lua" not in plugins.split(","):
        return [_without(client, options)]
    script = _script(client, config, ping)
    return [
        _enters_held(client, config, options, script, plugins),
        failing_open.check(options, script.path, script.text),
        fence.check(client.fence),
    ]


def _enters_held(
    client: SlurmClient, config: Mapping[str, str], options: SlurmOptions, script: Script, plugins: str
) -> Check:
    if script.gone:
        found = (
            f"{script.path} is gone: slurmctld does not start without it; until then slurmctld uses the "
            "script that it has loaded"
        )
        return Check(_SUBJECT, False, found, f"install {shipped(_SHIPPED)} there, or unset JobSubmitPlugins")
    wrong = _wrong(script, options) if script.text else None
    if wrong is not None:
        return wrong
    boot = reader.timestamp(config.get("BOOT_TIME", ""))
    seen = f"JobSubmitPlugins={plugins}, "
    seen += (
        f"MANAGED names {', '.join(options.partitions)}"
        if script.text else f"{script.path} cannot be read from here"
    )  # fmt: skip
    held_then = failing_open.held_then(options, script.text)
    return loaded(script, boot, seen, options.partitions, _listed(client, options), held_then)


def loaded(
    script: Script,
    boot: float | None,
    seen: str,
    partitions: Sequence[str],
    jobs: Iterable[reader.JobRecord],
    held_then: Callable[[float], bool] = lambda submitted: True,
) -> Check:
    """Whether slurmctld uses the script of the file.

    ``boot``: when slurmctld started, seconds since the epoch, if that is known; ``seen``: what is known
    already, for a person; ``jobs``: the jobs that Slurm lists. ``held_then``: whether the script held what
    was submitted at a moment (absolute seconds), while headway was not silent.
    """
    known = [moment for moment in (script.changed, boot) if moment is not None]
    found = witnesses(jobs, partitions, max(known), held_then) if known else {}
    remedy = "restart slurmctld, and look for job_submit/lua in its log"
    for name, witness in found.items():
        if not witness.held:
            return Check(
                _SUBJECT, False,
                f"{seen}, but job {witness.job} entered {name} unheld at {_moment(witness.submitted)}: "
                "slurmctld uses another script (or an administrator released the job or moved it there)",
                remedy,
            )  # fmt: skip
    if script.changed is not None and boot is not None and script.changed < boot:
        return Check(
            _SUBJECT, True, f"{seen}; slurmctld loaded the script when it started, at {_moment(boot)}"
        )
    unseen = [name for name in partitions if name not in found]
    if not unseen:
        numbers = ", ".join(dict.fromkeys(str(witness.job) for witness in found.values()))
        return Check(_SUBJECT, True, f"{seen}; a script of headway's held job {numbers}")
    why = ""
    if script.changed is not None and boot is not None:
        times = _moment(script.changed), _moment(boot)
        why = "{} was changed at {}, slurmctld started at {}: ".format(script.path, *times)
    return Check(
        _SUBJECT, True, f"{seen}; {why}whether slurmctld uses that script cannot be seen from here",
        f"restart slurmctld (of Slurm 24.11, scontrol reconfigure does). Or, while headway does not drive, "
        f"submit a job that waits: {_SUBMIT.format(unseen[0])}; check again, and scancel the "
        "job", known=False,
    )  # fmt: skip


def witnesses(
    jobs: Iterable[reader.JobRecord],
    partitions: Sequence[str],
    since: float,
    held_then: Callable[[float], bool] = lambda submitted: True,
) -> dict[str, Witness]:
    """Partition -> the last job submitted to it after the second of ``since`` that shows something.

    The script held a job with its mark, and did not hold a job without a mark and without a hold. A job that
    its user holds, that headway has taken over, or that was requeued (then Slurm changes when it was
    submitted) shows nothing.
    """
    found: dict[str, Witness] = {}
    for record in jobs:
        witness = _witness(record)
        if witness is None or witness.submitted < int(since) + 1:
            continue
        if not witness.held and not held_then(witness.submitted):
            continue
        names = values.text(record.partition).split(",")
        for name in partitions:
            # That one of several partitions is managed is enough for the script.
            if name in names and (not witness.held or len(names) == 1):
                found[name] = max(witness, found.get(name, witness), key=lambda one: (one.submitted, one.job))
    return found


def _witness(record: reader.JobRecord) -> Witness | None:
    submitted, mark = values.seconds(record.submit_time), values.text(record.admin_comment)
    if submitted is None or values.integer(record.restart_cnt):
        return None
    held = mark.startswith(marker.NEW)
    _, word = reader.said_by_user(values.text(record.comment))
    if not held and (mark or word or not values.number(record.priority)):
        return None
    return Witness(submitted, values.integer(record.job_id), held)


def _script(client: SlurmClient, config: Mapping[str, str], ping: str) -> Script:
    """The file, where commands run on this machine; with its time where slurmctld does so, too."""
    path = Path(config.get("SLURM_CONF", "")).parent / "job_submit.lua"
    if client.where:
        return Script(path)
    controller = _CONTROLLER.search(ping)
    here = {"localhost", socket.gethostname().partition(".")[0]}
    is_here = controller is not None and controller.group(1).partition(".")[0] in here
    try:
        text, changed = path.read_text(encoding="utf-8", errors="replace"), path.stat().st_ctime
    except FileNotFoundError:
        return Script(path, gone=is_here)
    except OSError:
        return Script(path)
    return Script(path, text, changed=changed if is_here else None)


def _wrong(script: Script, options: SlurmOptions) -> Check | None:
    """What the file does not do for these options; None if it does all."""
    text, path = _COMMENT.sub("", script.text), script.path
    remedy = f"install {shipped(_SHIPPED)} as {path}"
    managed, behind = _table("MANAGED", text), _table("BEHIND", text) or []
    if managed is None:
        remedy += " and set MANAGED to cluster.options.partitions"
        return Check(_SUBJECT, False, f"{path} is not headway's script", remedy)
    if missing := [name for name in options.partitions if name not in managed]:
        remedy += " and set MANAGED to cluster.options.partitions"
        return Check(_SUBJECT, False, f"MANAGED of {path} lacks {', '.join(missing)}", remedy)
    if reader.RELEASED not in text:
        found = f"{path} lets users release jobs that headway holds (it lacks headway's slurm_job_modify)"
        return Check(_SUBJECT, False, found, remedy)
    if reader.USER_HOLD not in text:
        return Check(_SUBJECT, False, f"{path} loses users' holds of jobs that headway holds", remedy)
    if unguarded := sorted(set(options.background.values()).difference(behind)):
        found = f"BEHIND of {path} lacks {', '.join(unguarded)}: users may submit to it, past headway"
        return Check(_SUBJECT, False, found, f"{remedy} and set BEHIND to the partitions of background jobs")
    return None


def _table(name: str, text: str) -> list[str] | None:
    """The partitions in one of the script's tables; None if it has no such table."""
    table = re.search(rf"\b{name}\s*=\s*\{{([^}}]*)\}}", text)
    return _NAME.findall(table.group(1)) if table else None


def _without(client: SlurmClient, options: SlurmOptions) -> Check:
    """Where there is no filter: how many jobs Slurm may start now."""
    argv = ("squeue", "-h", "-t", "PD", "-p", ",".join(options.partitions), "-o", "%i|%Q")
    waiting = [line for line in client.run(argv).text.splitlines() if "|" in line]
    loose = [line for line in waiting if line.rpartition("|")[2].strip() != "0"]
    return Check(
        _SUBJECT, False,
        f"no submit filter; {len(loose)} of {len(waiting)} pending jobs are not held",
        f"install {shipped(_SHIPPED)} and set JobSubmitPlugins=lua; until then Slurm may start a job "
        "before headway has seen it", helps=True,
    )  # fmt: skip


def _listed(client: SlurmClient, options: SlurmOptions) -> Sequence[reader.JobRecord]:
    """The jobs of the managed partitions, including jobs that are over; none if Slurm does not answer."""
    argv = ("squeue", "--json", "-a", "-t", "all", "-p", ",".join(options.partitions))
    try:
        return reader.decode(client.run(argv).stdout, "squeue: the listing of jobs", set()).jobs or ()
    except Failure:
        return ()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
