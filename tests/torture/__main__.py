"""``python -m torture slurm --kills 200``: exit code 0 if the run was clean, 1 if not, 2 if it cannot run."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from batch_servers import find_launcher, why_missing

from torture.campaign import campaign
from torture.lsf import Lsf
from torture.pbs import Pbs
from torture.report import report
from torture.slurm import Slurm, Slurm24
from torture.system import System

SYSTEMS: Mapping[str, type[System]] = {
    "slurm": Slurm, "slurm24": Slurm24, "pbs": Pbs, "lsf": Lsf,
}  # fmt: skip


def why_not(name: str) -> str:
    """Why this system cannot be tortured here; "" if it can."""
    system = SYSTEMS[name]
    if not issubclass(system, Slurm):
        return why_missing(name)
    if why := system.release.why_missing():
        return why
    return "" if os.geteuid() == 0 else "jobs of several users on a throw-away Slurm need root"


def wanted(name: str) -> bool:
    """Whether CI cannot do without it."""
    system = SYSTEMS[name]
    return system.release.wanted if issubclass(system, Slurm) else find_launcher(name).is_file()


def start(name: str, root: Path) -> System:
    """A new cluster of this system under ``root``."""
    return SYSTEMS[name](root)


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.split(":")[0])
    parser.add_argument("system", choices=list(SYSTEMS))
    parser.add_argument("--kills", type=int, default=240)
    parser.add_argument("--seed", type=int, help="of an earlier run, to have its jobs and kills again")
    parser.add_argument("--backlog", type=int, default=24, help="jobs that the users keep in the system")
    parser.add_argument(
        "--out", type=Path, help="where the report and all records go (default: a new directory)"
    )
    given = parser.parse_args()
    if why := why_not(given.system):
        print(why, file=sys.stderr)
        return 2
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000
    # Slurm's sockets need a short path.
    base = Path(tempfile.mkdtemp(prefix="hwt-"))
    base.chmod(0o755)
    out = given.out or base / "out"
    print(
        f"{given.system}, seed {seed}, {given.kills} kills; everything is under {base} and {out}", flush=True
    )
    began = time.time()

    def tell(text: str) -> None:
        print(f"{time.time() - began:7.0f} s  {text}", flush=True)

    system = start(given.system, base / "system")
    try:
        outcome = campaign(system, seed, given.kills, out, tell, backlog=given.backlog)
    finally:
        system.stop()
    text = report(outcome)
    (out / "report.md").write_text(text)
    print(text)
    return 1 if outcome.headways else 0


if __name__ == "__main__":
    raise SystemExit(main())
