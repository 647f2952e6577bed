"""A site's policy, moved over from a real Slurm with accounting: imported, then read while headway drives."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from live_daemon import HEADWAY, Daemon, Diary
from slurm_cluster import SYSTEM, SlurmCluster
from test_operators_path import heartbeat, install_filter
from waiting import until

pytestmark = pytest.mark.slurm

SET = {
    "AccountingStorageEnforce": "associations,limits,qos", "PriorityType": "priority/multifactor",
    "PriorityCalcPeriod": "00:01:00", "PriorityDecayHalfLife": "7-0", "PriorityWeightFairshare": "10000",
    "PriorityWeightQOS": "2000", "PriorityWeightJobSize": "500", "Licenses": "matlab:4",
}  # fmt: skip
ACCOUNTS = [
    "add qos high priority=100",
    "add account physics Description=p Organization=o fairshare=60",
    "add account theory parent=physics Description=p Organization=o fairshare=30 GrpWall=30",
    "add account chem Description=p Organization=o fairshare=40 GrpTRES=cpu=10",
    "add user bin account=theory,chem qos=normal,high",
    "add user games account=chem MaxJobs=3",
]


@pytest.fixture
def accounted(slurm_factory: Callable[..., SlurmCluster]) -> SlurmCluster:
    """A Slurm with accounts, limits and priorities of its own."""
    missing = [name for name in ("slurmdbd", "mariadbd") if shutil.which(name, path=SYSTEM) is None]
    if missing:
        pytest.skip(f"Slurm's accounting is not installed: {' '.join(missing)} (slurmdbd, mariadb-server)")
    words = [word for key, value in SET.items() for word in ("--set", f"{key}={value}")]
    cluster = slurm_factory("--accounting", *words)
    for line in ACCOUNTS:
        cluster.run("sacctmgr", "-i", *line.split())
    return cluster


@pytest.fixture
def site(accounted: SlurmCluster, tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(accounted, tmp_path, mode="monitor")
    yield daemon
    daemon.clean_up()


def submit(cluster: SlurmCluster, user: str, account: str, *words: str) -> str:
    line = ["sbatch", "--parsable", "-A", account, "-D", "/tmp", "-o", "/dev/null", *words]
    return cluster.run(*line, user=user).split(";")[0]


def imported(cluster: SlurmCluster, folder: Path) -> dict[str, object]:
    """The plugins that the chapter's first two steps make of the running Slurm."""
    shutil.copy(cluster.conf, folder / "slurm.conf")
    cluster.run("sacctmgr", "dump", "tc", f"file={folder / 'slurm.dump'}")
    (folder / "qos.txt").write_text(cluster.run("sacctmgr", "-P", "show", "qos"))
    words = ("import", "slurm", "slurm.conf", "slurm.dump", "qos.txt", "--out", "imported.yaml")
    done = subprocess.run([HEADWAY, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 remarks on settings that are not carried over" in done.stdout + done.stderr
    found = yaml.safe_load((folder / "imported.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_a_policy_is_moved_over_and_what_was_used_before_counts(site: Daemon, tmp_path: Path) -> None:
    cluster, diary = site.cluster, Diary(site.cluster)
    submit(cluster, "bin", "theory", "-n2", "-t", "1", "--wrap", "sleep 2")
    site.configure(plugins=imported(cluster, tmp_path)["plugins"])
    lines = site.command("check").stdout.splitlines()
    lacking = [line.split()[1:4] for line in lines if line.startswith(("FAIL", "later"))]
    assert lacking == [["jobs", "enter", "held"]]
    cluster.until(lambda: not cluster.run("squeue", "-h"), what="Slurm has run a job")

    def wall() -> float:
        shown = cluster.scontrol("-o", "show", "assoc_mgr", "flags=assoc", "accounts=theory")
        (line,) = (one for one in shown.splitlines() if "Account=theory UserName= " in one)
        return float(line.partition("GrpWall=30(")[2].partition(")")[0])

    def counted() -> bool:
        # It adds up what was used once a period, and when it reads its configuration.
        cluster.scontrol("reconfigure")
        return wall() > 0

    cluster.until(counted, what="Slurm has counted its minutes")
    before = wall()
    site.configure(mode="drive", plugins=[{"limits": {"of": "from-slurm"}}, "easy", "first-fit"])
    site.start()

    def held(account: str, minutes: int) -> str:
        return str(cluster.submit(2, script=diary.script(0.5), user="bin", account=account, minutes=minutes))

    # Thirty minutes would fit if nothing had been used.
    barred, short, other = held("theory", 30), held("theory", 10), held("chem", 30)
    site.until(lambda: set(diary.ended()) == {short, other}, what="the others run")
    said = " ".join(site.command("explain", barred).stdout.split())
    found = re.search(
        r"the limit of 30 minutes of running jobs, past and still to come, of account 'theory' is reached: "
        r"([0-9.]+) in use, it would add 30",
        said,
    )
    assert found is not None and float(found[1]) >= before - 0.01, said
    assert barred not in diary.begun()
    assert site.said("a plugin failed") == []
    assert site.stop() == 0


@pytest.mark.long
def test_what_was_imported_drives(accounted: SlurmCluster, tmp_path: Path) -> None:
    """All of the chapter's steps: check, watch, the submit filter, drive; usage stays what Slurm counts."""
    cluster, diary = accounted, Diary(accounted)
    options = imported(cluster, tmp_path)
    site = Daemon(
        cluster, tmp_path, mode="monitor", plugins=options["plugins"],
        options={"heartbeat": heartbeat(cluster)},
    )  # fmt: skip

    def failed() -> list[list[str]]:
        lines = site.command("check").stdout.splitlines()
        return [line.split()[1:4] for line in lines if line.startswith(("FAIL", "later"))]

    def usage(said: str) -> dict[tuple[str, ...], tuple[str, str]]:
        head, *rows = (line.split("|") for line in said.splitlines())
        at = [head.index(name) for name in ("RawUsage", "FairShare")]
        return {tuple(name.strip() for name in row[:2]): (row[at[0]], row[at[1]]) for row in rows}

    try:
        assert failed() == [["jobs", "enter", "held"]]
        site.start()
        watched = submit(cluster, "bin", "theory", "-n2", "-t1", "--wrap", diary.script(2))
        site.until(lambda: diary.ended()[watched] == 1, what="Slurm starts its jobs")
        assert site.stop() == 0
        install_filter(cluster)
        site.configure(mode="drive")
        assert failed() == []
        site.start()
        over = diary.path.with_name("over")
        long = diary.script(f"0; while ! [ -e {over} ]; do sleep 0.2; done")
        jobs = [
            submit(cluster, "games", "chem", "-n4", "-t10", "--wrap", long),
            submit(cluster, "bin", "theory", "-n12", "-t10", "--wrap", long),
        ]
        site.until(lambda: set(jobs) <= set(diary.begun()), what="the machine is full")
        who = [("bin", "chem", "normal"), ("bin", "chem", "high"), ("games", "chem", "normal")]
        waiting = [
            submit(cluster, user, account, "-n2", "-t2", "-q", qos, "--wrap", diary.script(1))
            for user, account, qos in who
        ]
        taken = "a job was taken over and is held for headway"
        site.until(lambda: set(waiting) <= {one["job"] for one in site.said(taken)}, what="they wait")
        head, *rows = (line.split("|") for line in site.command("priority", "-P").stdout.splitlines())
        priority = {row[0]: dict(zip(head[2:], map(float, row[2:]), strict=True)) for row in rows}
        first, second, third = (priority[job] for job in waiting)
        assert (first["qos"], second["qos"], third["qos"]) == (0, 2000, 0)
        for one in (first, second, third):
            assert one["Priority"] == pytest.approx(one["fairshare"] + one["qos"] + one["size"], abs=0.02)
        over.touch()
        ran = [watched, *jobs, *waiting]
        site.until(lambda: diary.ended() == dict.fromkeys(ran, 1), what="all have run")
        assert diary.begun() == dict.fromkeys(ran, 1)

        def agree() -> bool:
            cluster.scontrol("reconfigure")
            theirs = usage(cluster.run("sshare", "-a", "-l", "-P"))
            return usage(site.command("shares", "-P").stdout) == theirs

        # Slurm counts once a minute, and each look starts three programs.
        until(agree, "usage and fair shares are the same", pause=5)
        assert site.said("a plugin failed") == []
        assert site.stop() == 0
        site.assert_replays()
    finally:
        site.clean_up()
