"""Where the files of ``etc/`` are: the submit filter, units, example configurations and campaigns."""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path


def shipped(name: str) -> Path:
    """A file of ``etc/`` by its name there (``"slurm/job_submit.lua"``): where the wheel has put it
    (``share/headway/etc`` below the environment), else in the checkout that this is."""
    wanted = f"share/headway/etc/{name}"
    for file in files("headway") or ():
        if file.as_posix().endswith(wanted):
            return Path(str(file.locate())).resolve()
    checkout = Path(__file__).parents[3] / "etc" / name
    return checkout if checkout.exists() else Path(sys.prefix) / wanted
