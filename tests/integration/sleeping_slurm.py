"""A Slurm whose nodes sleep. One that sleeps is one whose slurmd was ended; the programs that Slurm, or
headway, calls do that."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Both run with closed descriptors under slurmctld, so they open their own. ``root`` is the cluster's
#: directory. A slurmd that is told to end just before it waits for a connection may not notice: ``end`` tells
#: it until it is gone. Its file with its number goes before it does, and the next one needs its port. One
#: program at a time: Slurm may wake a node while the program that puts it to sleep still goes on.
PREAMBLE = """#!/bin/sh
exec </dev/null >>{root}/log/power.out 2>&1
export SLURM_CONF={root}/etc/slurm.conf PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec 9>>{root}/log/power.lock
flock 9
end() {{
  slurmd="slurmd -f $SLURM_CONF -N $1( |\\$)"
  for tried in $(seq 50); do pkill -f "$slurmd" || return; sleep 0.1; done
  pkill -KILL -f "$slurmd"
}}
"""
#: Ends the slurmd of each node of a host list.
SUSPEND = """
echo "suspend $1" >> {root}/power
for node in $(scontrol show hostnames "$1"); do end $node; done
exit 0
"""
#: Starts it again, as after a boot (-b), once the one before is gone; not for nodes of which there is a file
#: in ``broken``. No boot is over within the second in which it was asked for: slurmctld would not believe a
#: node that says it has been up since before that, and it does not ask it again.
RESUME = """
echo "resume $1" >> {root}/power
sleep 1.5
for node in $(scontrol show hostnames "$1"); do
  end $node
  [ -e {root}/broken/$node ] || setsid slurmd -f $SLURM_CONF -N $node -b 9>&-
done
"""


class Programs:
    """The site's programs for sleep, made before its cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, root: Path) -> None:
        (self.directory / "root").write_text(str(root))
        for name, text in {"suspend": SUSPEND, "resume": RESUME}.items():
            self.script(name, (PREAMBLE + text).format(root=root))

    def script(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.directory / name)


def begin(slurm_factory: Callable[..., Any], programs: Programs, resume_timeout: int, *words: str) -> Any:
    """4 nodes of 2 CPUs with Slurm's power saving, which does nothing by itself for a day."""
    settings = {
        "SuspendProgram": programs.path("suspend"), "ResumeProgram": programs.path("resume"),
        "SuspendTime": "86400", "SuspendTimeout": "1", "ResumeTimeout": str(resume_timeout),
        "SuspendRate": "0", "ResumeRate": "0", "SlurmdTimeout": "5",
    }  # fmt: skip
    words = (*words, *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))
    programs.script("suspend", "#!/bin/sh\n")
    programs.script("resume", "#!/bin/sh\n")
    started = slurm_factory(*words, nodes=4, cpus=2)
    (started.root / "broken").mkdir()
    (started.root / "power").touch()
    programs.make(started.root)
    return started


def called(cluster: Any) -> list[str]:
    """The calls of the programs, such as "suspend node1"."""
    lines: list[str] = (cluster.root / "power").read_text().splitlines()
    return lines


def node_state(cluster: Any, node: str) -> set[str]:
    """Slurm's words for a node's state."""
    words: list[str] = re.findall(r"State=(\S+)", _shown(cluster, node))[0].split("+")
    # A sign behind a word says once more what another word says.
    return {re.match("[A-Z_]+", word)[0] for word in words}  # type: ignore[index]


def node_reason(cluster: Any, node: str) -> str:
    """Why a node is drained or down, without who said it and when."""
    return re.findall(r"Reason=(.*) \[", _shown(cluster, node))[0]


def _shown(cluster: Any, node: str) -> str:
    """All that Slurm says of a node, in one line; in this form all releases say the same."""
    return str(cluster.run("scontrol", "-o", "show", "node", node))
