"""SAREG drives a real PBS and a real LSF: jobs are promised a time and levels or refused, told of them, and
`headway protect` carries them out."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest
from protected_jobs import LABEL, MARGIN, assert_protected, prepare, script, wanted
from real_systems import Lsf, Pbs
from test_tiers_pbs_lsf import system

from headway.decisions import Annotate
from headway.events import JobEnded, JobSubmitted
from headway_plugins.security.measured import measure, profile_text
from headway_plugins.security.protection.keys import Keys, make_keys

pytestmark = pytest.mark.waits

__all__ = ["system"]

#: The interpreter of the tests may be where the users of the test server cannot go.
PYTHON = "/usr/bin/python3"
START = (
    f"import site; site.addsitedir({sysconfig.get_path('purelib')!r}); from headway.cli import main; main()"
)
SIZE = 100_000


def as_user(system: Pbs | Lsf) -> str:
    """How a user's shell calls headway there."""
    version = system.server.call(PYTHON, "--version", user="alice").stdout
    if f"{sys.version_info.major}.{sys.version_info.minor}." not in version:
        pytest.skip(f"{PYTHON} is {version.strip() or 'not there'}: users cannot load what is installed here")
    return shlex.join((PYTHON, "-c", START))


def give(path: Path, system: Pbs | Lsf) -> None:
    """It is the user's from now on."""
    owner = int(system.server.run("id", "-u", "alice"))
    for one in (path, *path.rglob("*")):
        os.chown(one, owner, -1)


def submit(system: Pbs | Lsf, work: Path, lines: str, deadline: float) -> str:
    """A user's job of five minutes on one processor; its id."""
    words = wanted(SIZE, time.time() + deadline)
    path = work.with_suffix(".sh")
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    if isinstance(system, Lsf):
        return system.bsub("-W", "5", "-Jd", f"headway:{','.join(words)} scopred:app=turn", str(path))
    return system.server.run(
        "qsub", "-l", "select=1:ncpus=1", "-l", "walltime=0:05:00", "-o", "/dev/null", "-e", "/dev/null",
        "-v", f"HEADWAY={':'.join(words)}", str(path), user="alice",
    )  # fmt: skip


def test_levels_are_promised_told_and_carried_out(system: Pbs | Lsf) -> None:
    headway = as_user(system)
    folder = system.directory
    make_keys(folder / "keys")
    shutil.copytree(folder / "keys", folder / "users-keys")
    (folder / "speeds.yaml").write_text(profile_text(measure(0.01)))
    keys, work = Keys(folder / "keys"), folder / "job"
    prepare(work, SIZE, keys)
    give(work, system)
    give(folder / "users-keys", system)
    # Without being asked, LSF's flavour is not known to a replay.
    options: dict[str, Any] = {"flavour": "openlava"}
    if isinstance(system, Pbs):
        system.server.headway_notes()
        options = {"notes": True}
    policy = {"sareg": {"profile": str(folder / "speeds.yaml"), "margin": MARGIN}}
    daemon = system.daemon(plugins=[policy, "first-fit"], options=options)
    job = submit(system, work, script(work, headway, system.name, folder / "users-keys"), 3600.0)
    # Five minutes of work, and one until the deadline.
    late = submit(system, folder / "late", "true", 60.0)
    daemon.start()

    def told(kind: type[Any]) -> dict[str, Any]:
        # A system that other tests had tells of their jobs, too.
        return {e.job_id if kind is JobEnded else e.job.id: e for e in daemon.events(kind)}

    daemon.until(lambda: job in told(JobEnded) and late in told(JobSubmitted), what="the job ends")
    end, said = told(JobEnded)[job], (work / "said").read_text()
    assert (end.outcome, end.exit_code) == ("completed", 0), said
    notes = {d.job_id: d.value for _, d in daemon.decisions() if isinstance(d, Annotate)}
    assert notes == {job: LABEL}
    assert_protected(work, keys, SIZE, job)
    assert "batch system" not in said
    if isinstance(system, Lsf):
        shown = system.server.run("bjobs", "-a", "-UF", job)
        assert f"scopred:app=turn headway-protect:{LABEL}>" in shown
    refused = daemon.command("explain", late)
    assert "its deadline cannot be met" in " ".join(refused.stdout.split()), refused.stderr
    assert system.waits(late)
    assert not daemon.said("plugin failed")
    daemon.stop()
    daemon.assert_replays()
