"""Shares and priorities against a real Slurm with accounting, which runs all jobs itself.

headway only watches, and reads accounts, shares, QOS and weights from the running Slurm. What it has counted
from events is what Slurm's own accounting says, and the factors that it computes for the jobs that wait are
those of `sprio`, and so are their priorities. With ``ties: as-slurm`` that holds on a site's first day, too,
when all accounts tie.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_daemon import HEADWAY, Daemon
from slurm_cluster import SYSTEM, SlurmCluster
from waiting import until

pytestmark = [pytest.mark.slurm, pytest.mark.long, pytest.mark.campaign]

#: Accounts on three levels, eleven users of whom one is in two accounts, shares of zero.
ACCOUNTS = Path(__file__).parents[1] / "plugins" / "priority" / "fixtures" / "slurm-22.05.dump"
#: User, account, QOS.
WHO = [
    ("daemon", "theory", "high"), ("daemon", "chemistry", "normal"), ("bin", "theory", "low"),
    ("sys", "lab", "normal"), ("games", "lab", "low"), ("lp", "chemistry", "high"),
    ("news", "deep", "normal"), ("uucp", "deep", "low"), ("proxy", "empty", "high"),
    ("www-data", "chemistry", "normal"),
]  # fmt: skip
WEIGHTS = {"Age": 1000, "Assoc": 300, "Fairshare": 10000, "JobSize": 500, "Partition": 100, "QOS": 2000}
OURS = ("age", "association", "fairshare", "size", "pool", "qos")


@pytest.fixture
def accounted(slurm_factory: Callable[..., SlurmCluster]) -> SlurmCluster:
    """A Slurm with accounting, multifactor priorities and these accounts."""
    missing = [name for name in ("slurmdbd", "mariadbd") if shutil.which(name, path=SYSTEM) is None]
    if missing:
        pytest.skip(f"Slurm's accounting is not installed: {' '.join(missing)} (slurmdbd, mariadb-server)")
    said = {
        "AccountingStorageEnforce": "associations,limits,qos",
        "PriorityType": "priority/multifactor", "PriorityDecayHalfLife": "0",
        "PriorityUsageResetPeriod": "NONE", "PriorityCalcPeriod": "00:01:00", "PriorityMaxAge": "00:01:00",
        **{f"PriorityWeight{name}": str(weight) for name, weight in WEIGHTS.items()},
    }  # fmt: skip
    words = [word for key, value in said.items() for word in ("--set", f"{key}={value}")]
    cluster = slurm_factory("--accounting", *words)
    for name, priority, factor in (("high", 100, 1), ("low", 10, 0.5)):
        cluster.run("sacctmgr", "-i", "add", "qos", name, f"priority={priority}", f"usagefactor={factor}")
    cluster.run("sacctmgr", "-i", "load", str(ACCOUNTS))
    cluster.run("sacctmgr", "-i", "modify", "account", "root", "set", "qos=normal,high,low")
    # Limits that nobody reaches.
    cluster.run("sacctmgr", "-i", "modify", "account", "theory", "set", "GrpTRESMins=cpu=100000,node=50000")
    cluster.run("sacctmgr", "-i", "modify", "user", "bin", "account=theory", "set", "GrpTRESMins=cpu=9000")
    # One who shares what the account has, and an account without shares of its own.
    cluster.run("sacctmgr", "-i", "modify", "user", "sys", "account=lab", "set", "fairshare=parent")
    cluster.run("sacctmgr", "-i", "modify", "account", "deep", "set", "fairshare=parent")
    # A slurmctld that began without accounts counts no usage.
    cluster.kill("slurmctld", "TERM")
    until(lambda: "is DOWN" in cluster.run("scontrol", "ping", check=False), what="slurmctld is down")
    cluster.up("slurmctld")
    until(lambda: "is UP" in cluster.run("scontrol", "ping", check=False), what="slurmctld is up")
    return cluster


@pytest.fixture
def watching(accounted: SlurmCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """headway, in monitor mode; its parameter: more options of `fair-tree`."""
    more = getattr(request, "param", {})
    plugins = [
        {"fair-tree": {"accounts": "from-slurm", **more}}, {"multifactor": {"weights": "from-slurm"}}, "easy",
    ]  # fmt: skip
    daemon = Daemon(accounted, tmp_path, mode="monitor", plugins=plugins)
    daemon.start("--monitor")
    try:
        yield daemon
    finally:
        daemon.clean_up()


def submit(cluster: SlurmCluster, who: tuple[str, str, str], *words: str) -> str:
    user, account, qos = who
    line = ["sbatch", "--parsable", "-A", account, "--qos", qos, "-D", "/tmp", "-o", "/dev/null", *words]
    return cluster.run(*line, user=user).split(";")[0]


def printed(daemon: Daemon, *words: str) -> list[list[str]]:
    line = [str(HEADWAY), *words, "-P", "-c", str(daemon.config_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return [row.split("|") for row in done.stdout.splitlines()]


def sshare(cluster: SlurmCluster) -> list[list[str]]:
    return [line.split("|") for line in cluster.run("sshare", "-a", "-l", "-P").splitlines()]


def differences(daemon: Daemon, cluster: SlurmCluster) -> str:
    """The rows of `headway shares` that are not those of `sshare -a -l`."""
    pairs = zip(printed(daemon, "shares"), sshare(cluster), strict=False)
    return "\n".join(f"{ours} {theirs}" for ours, theirs in pairs if ours != theirs)


@pytest.mark.parametrize("watching", [{"ties": "as-slurm"}], indirect=True)
def test_ties_as_slurm_are_those_of_slurm_from_the_first_day_on(
    accounted: SlurmCluster, watching: Daemon
) -> None:
    # 22.05 orders accounts that tie by name once somebody has changed shares after slurmctld's start.
    for shares in ("31", "30"):
        accounted.run("sacctmgr", "-i", "modify", "account", "lab", "set", f"fairshare={shares}")

    def agrees() -> bool:
        return printed(watching, "shares") == sshare(accounted)

    def told() -> str:
        return differences(watching, accounted)

    # Slurm computes factors once a period, and headway asks for shares once in its own.
    until(agrees, what="a site on which nothing was used", seconds=300, said=told)
    for who in (WHO[2], WHO[5], WHO[8]):
        submit(accounted, who, "-n", "2", "-t", "5", "--wrap", "sleep 2")
    until(lambda: not accounted.run("squeue", "-h"), what="all jobs are over", seconds=300)
    until(
        lambda: agrees() and sshare(accounted)[1][4] != "0",
        what="a site on which few accounts were used", seconds=300, said=told,
    )  # fmt: skip


def test_shares_and_factors_are_those_of_slurm(accounted: SlurmCluster, watching: Daemon) -> None:
    # 100 jobs of several sizes, which Slurm starts.
    for number, who in enumerate(WHO * 2):
        size, seconds = 1 + number % 3, 1 + number % 4
        submit(accounted, who, "-n", str(size), "-t", "5", "--array=1-5", "--wrap", f"sleep {seconds}")
    until(lambda: not accounted.run("squeue", "-h"), what="all jobs are over", seconds=600)

    def agrees() -> bool:
        """Slurm adds up what was used once a period, headway as it is told."""
        ours, theirs = printed(watching, "shares"), sshare(accounted)
        return ours == theirs and theirs[1][4] != "0"

    until(
        agrees, what="shares and use are the same in every column", seconds=300,
        said=lambda: differences(watching, accounted),
    )  # fmt: skip

    # Nothing runs, so that usage stands still while others wait.
    accounted.scontrol("update", "NodeName=ALL", "State=DRAIN", "Reason=test")
    waiting = [
        submit(accounted, who, "-n", str(1 + number), "-t", "7", f"--nice={number}", "--wrap", "true")
        for number, who in enumerate(WHO)
    ]

    def factors() -> dict[str, list[float]]:
        rows = accounted.run("sprio", "-h", "-o", "%i|%a|%b|%f|%j|%p|%q|%N|%Y").splitlines()
        return {row[0].strip(): [float(one) for one in row[1:]] for row in (r.split("|") for r in rows)}

    def ours() -> dict[str, list[float]]:
        header, *rows = printed(watching, "priority", "-n")
        assert header == ["Job", "User", "Priority", *OURS, "nice"]
        return {row[0]: [float(one) for one in (*row[3:], row[2])] for row in rows}

    until(
        lambda: set(factors()) == set(ours()) == set(waiting),
        what="both know the jobs that wait",
        seconds=300,
    )

    def same() -> bool:
        """Ages too, once everybody has waited as long as counts; Slurm's priorities are whole numbers."""
        one, other = factors(), ours()
        return all(row[0] == 1 for row in one.values()) and one == {
            key: [*row[:-1], float(int(row[-1]))] for key, row in other.items()
        }

    until(same, what="the priorities are the same", seconds=300, said=lambda: f"{factors()}\n{ours()}")
