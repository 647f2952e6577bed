"""A daemon for two clusters of any kind, with metajobs of a machine ``east`` and a machine ``west``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from live_daemon import HEADWAY, Daemon
from waiting import HANG

#: Of each machine.
EAST, WEST = {"pool": "east:batch"}, {"pool": "west:batch"}


def slurm(cluster: Any) -> dict[str, Any]:
    """A real Slurm in a configuration."""
    options = {"partitions": ["batch"], "poll_interval": 0.4, **cluster.options}
    return {"adapter": "slurm", "options": options}


class Pair(Daemon):
    """``headway run`` on the clusters ``east`` and ``west``, and ``headway metajob``."""

    def __init__(
        self,
        east: Mapping[str, Any],
        west: Mapping[str, Any],
        directory: Path,
        machine: Mapping[str, Any] = WEST,
    ) -> None:
        """``east``, ``west``: as in the configuration's ``clusters``. ``machine``: in the west."""
        metajobs = {
            "machines": {"east": EAST, "west": machine}, "lead": 20.0, "answer_timeout": 20.0,
            "limits": {"max_nodes": 2},
        }  # fmt: skip
        nowhere = SimpleNamespace(options={})
        super().__init__(nowhere, directory, plugins=[{"metajobs": metajobs}, "easy", "first-fit"])
        del self.config["cluster"]
        self.directory = directory
        self.configure(clusters={"east": east, "west": west})

    def ask(self, *words: str) -> str:
        """A metajob's command; what it printed."""
        done = subprocess.run(
            [str(HEADWAY), "metajob", *words, "-c", str(self.config_path)],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def submit(self, earliest: float, jobs: dict[str, str], **west: str) -> str:
        """A metajob of a node here and two nodes there, for three minutes; its id."""
        path = self.directory / "pair.yaml"
        machines = {"east": {"min": 1, "max": 1}, "west": {"min": 2, "max": 2, **west}}
        path.write_text(
            yaml.safe_dump({
                "usage": "multiple", "earliest": earliest, "latest": earliest + 3600, "total": 3,
                "duration": "3m", "machines": machines,
            })
        )  # fmt: skip
        bound = [word for machine, job in jobs.items() for word in ("--job", f"{machine}={job}")]
        said = self.ask("submit", str(path), *bound)
        assert said.startswith("accepted: metajob m"), said
        return said.split()[2].rstrip(":")

    def status(self, metajob: str) -> dict[str, Any]:
        return json.loads(self.ask("status", metajob, "--json"))

    def reserves(self) -> int:
        """How many reservations it has decided to make."""
        return sum(said["decision"] == "Reserve" for said in self.said("decided"))

    def reserved(self, metajob: str) -> None:
        """Wait until all of it is reserved and bound."""

        def done() -> bool:
            told = self.status(metajob)
            return told["phase"] == "reserved" and all(
                one["bound"] or not one["job"] for one in told["parts"]
            )

        self.until(done, 60, f"{metajob} is reserved")
