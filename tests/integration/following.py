"""Two real Slurms, jobs that save themselves, and a daemon that lets them follow a price or a calendar."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from test_federation_slurm import Federated

from headway import events as ev

#: What stands for a step of a job's work, seconds.
STEP = 0.2


class Worker:
    """Jobs that work in steps, save themselves on USR1, and go on from what they find in their image."""

    def __init__(self, directory: Path) -> None:
        self.images = directory / "images"
        self.diary = directory / "diary"
        self.diary.touch()
        self.diary.chmod(0o666)
        for name in ("north", "south"):
            place = self.images / name
            place.mkdir(parents=True)
            place.chmod(0o1777)
        self.images.chmod(0o755)

    def script(self, steps: int, *, saves: str = "echo $step > $image/state; echo > $image/complete") -> str:
        return (
            f"image={self.images}/$SLURM_CLUSTER_NAME/$SLURM_JOB_ID; mkdir -p $image; "
            "step=$(cat $image/state 2>/dev/null || echo 0); "
            f'say() {{ echo "$1 $SLURM_CLUSTER_NAME $SLURM_JOB_ID $step" >> {self.diary}; }}; '
            f"save() {{ {saves}; }}; trap save USR1; say begin; "
            "echo ${SLURM_RESTART_COUNT:-0} > $image/ready; "
            f"while [ $step -lt {steps} ]; do sleep {STEP}; step=$((step+1)); done; say end"
        )

    def saved(self, cluster: str, job: str) -> int:
        """The step that a job's image holds."""
        return int((self.images / cluster / job / "state").read_text())

    def lines(self, what: str) -> list[tuple[str, str, int]]:
        """Cluster, id there and step of each execution's begin or end."""
        found = [line.split() for line in self.diary.read_text().splitlines()]
        return [(cluster, job, int(step)) for kind, cluster, job, step in found if kind == what]


class Following(Federated):
    """A daemon whose plugin ``follow`` sends jobs between clusters."""

    def __init__(
        self, clusters: dict[str, Any], directory: Path, worker: Worker, follow: Mapping[str, Any],
        sites: Mapping[str, Mapping[str, Any]] | None = None, **signal: Any,
    ) -> None:  # fmt: skip
        super().__init__(clusters, directory)
        saving = {"directory": f"{worker.images}/{{cluster}}", "spare": 0, "timeout": 30, **signal}
        described = self.config["clusters"]
        for name, cluster in described.items():
            cluster["site"] = dict((sites or {}).get(name, {}))
        self.configure(
            clusters=described,
            plugins=[{"checkpoint-signal": saving}, "requeue", {"follow": dict(follow)}, "easy", "first-fit"],
        )

    def ends(self) -> Counter[tuple[str, str]]:
        return Counter((event.job_id, event.outcome) for event in self.events(ev.JobEnded))


def prices(directory: Path, name: str, *rows: tuple[float, float]) -> str:
    """A CSV file of prices: each from so many seconds from now on."""
    path = directory / f"{name}.csv"
    now = time.time()
    form = "%Y-%m-%dT%H:%M:%SZ"
    lines = [f"{time.strftime(form, time.gmtime(now + after))},{price}" for after, price in rows]
    path.write_text("\n".join(["time,price", *lines, ""]))
    return str(path)


def kept(worker: Worker, cluster: str, job: str) -> dict[str, Any]:
    """The daemon's record of an image."""
    found = json.loads((worker.images / cluster / ".headway" / f"{job}.json").read_text())
    assert isinstance(found, dict)
    return found
