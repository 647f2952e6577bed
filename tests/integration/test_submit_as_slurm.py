"""Jobs of real users that go to another real Slurm as these users, and what ``headway check`` says of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Diary
from test_federation_slurm import Federated
from test_routes_slurm import MOVABLE, PLUGIN, ends

pytestmark = [
    pytest.mark.slurm, pytest.mark.installed_slurm,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("useradd", "userdel", "runuser"))),
        reason="makes users of its own, which needs root, useradd, userdel and runuser",
    ),
]  # fmt: skip

USERS = ("hwann", "hwbob")
RUNUSER = ["runuser", "-u", "{user}", "--"]


@pytest.fixture(scope="module")
def users() -> Iterator[tuple[str, ...]]:
    """Two users with a shell and a home."""
    for name in USERS:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    yield USERS
    for name in USERS:
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {"north": slurm_factory(nodes=1, cpus=2), "south": slurm_factory(nodes=1, cpus=2)}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path) -> Iterator[Federated]:
    one = Federated(clusters, tmp_path)
    yield one
    one.clean_up()


def submit_as(daemon: Federated, *command: str) -> None:
    described = daemon.config["clusters"]
    described["south"]["site"] = {"submit_as": list(command)} if command else {}
    daemon.configure(clusters=described)


def said(daemon: Federated) -> dict[str, str]:
    """The lines of ``headway check`` about ``submit_as``, by cluster, with the lines that follow each."""
    shown = daemon.command("check").stdout
    found = re.findall(r"^(\S+ +\S+: submit_as .*(?:\n {5,}.*)*)", shown, re.MULTILINE)
    return {line.split()[1].rstrip(":"): " ".join(line.split()) for line in found}


def test_check_says_whose_jobs_can_come_and_what_is_missing(
    clusters: dict[str, Any], daemon: Federated, users: tuple[str, ...]
) -> None:
    north, _ = clusters.values()
    assert said(daemon)["south"].startswith("ok south: submit_as none: only jobs of root come here")
    submit_as(daemon, *RUNUSER)
    assert "tried for no user" in said(daemon)["south"]
    ann, bob = users
    north.submit(1, user=ann, comment=MOVABLE)
    north.submit(1, user=bob)
    found = said(daemon)
    assert found["south"] == f"ok south: submit_as runuser -u '{{user}}' --: jobs of {ann} can come"
    # Nothing of south goes, so nothing comes to north.
    assert found["north"].startswith("ok north: submit_as none")
    submit_as(daemon)
    assert re.match(rf"\? south: submit_as none: .*; jobs of {ann} wait that may go", said(daemon)["south"])
    submit_as(daemon, "no-such-program", "{user}")
    assert said(daemon)["south"].startswith("FAIL south: submit_as no-such-program '{user}':")
    # The user that the command runs sbatch as is none.
    submit_as(daemon, "runuser", "-u", "{user}-x", "--")
    shown = said(daemon)["south"]
    assert shown.startswith("FAIL") and f"jobs of {ann} cannot come" in shown and "does not exist" in shown
    assert daemon.command("check").returncode == 1


def test_a_job_goes_as_its_user(clusters: dict[str, Any], daemon: Federated, users: tuple[str, ...]) -> None:
    north, south = clusters.values()
    diary, _ = (Diary(cluster) for cluster in clusters.values())
    ann, bob = users
    script = f"id -un >> {diary.path}.who; {diary.script(1)}"
    who = Path(f"{diary.path}.who")
    who.touch()
    who.chmod(0o666)
    jobs = {user: north.submit(1, user=user, comment=MOVABLE, script=script) for user in (ann, bob)}
    submit_as(daemon, *RUNUSER)
    daemon.start("--plugin", str(PLUGIN))
    daemon.until(lambda: len(ends(daemon)) == 2, 90, "both ends are told")
    assert daemon.stop() == 0
    assert ends(daemon) == {f"north:{job}": "completed" for job in jobs.values()}
    assert sorted(who.read_text().split()) == sorted(users)
    came = {record["user_name"]: record for record in south.jobs().values() if record["nodes"]}
    assert set(came) == set(users)
    for user, job in jobs.items():
        assert f";from=north:{job}@" in came[user]["admin_comment"]
        assert north.state(job) == "CANCELLED"
