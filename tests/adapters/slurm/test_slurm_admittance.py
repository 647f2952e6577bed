"""``headway check``, line *two tiers*: whether the partition of background jobs takes those of the other one.

The answers are recorded ones in which some words were changed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pretended import result
from pretended_slurm import FIXTURES, PretendedSlurm

from headway.adapter import Check
from headway_adapters.slurm import SlurmAdapter, SlurmOptions

RECORDED = {
    line.split()[0].removeprefix("PartitionName="): line
    for line in (FIXTURES / "show-partitions-oneline.txt").read_text().splitlines()
}


def changed(name: str, words: str) -> str:
    """The recorded line of a partition, with these words in place of what it says there."""
    line = RECORDED[name]
    for word in ["OverSubscribe=FORCE:2", *words.split()]:
        key = word.partition("=")[0]
        # Slurm writes one of each pair.
        written = {"DenyAccounts": "AllowAccounts", "DenyQos": "AllowQos", "MaxMemPerCPU": "MaxMemPerNode"}
        line, made = re.subn(rf"\b{written.get(key, key)}=\S+", word, line)
        assert made == 1
    return line


def two_tiers(tmp_path: Path, front: str, behind: str) -> Check:
    key = tmp_path / "key"
    key.write_text("0" * 64)
    key.chmod(0o600)
    slurm = PretendedSlurm()
    listed = f"{changed('fg', front)}\n{changed('bg', behind)}\n"
    slurm.answer = lambda argv: result(argv, listed) if "partition" in argv else None
    options = SlurmOptions(
        partitions=("fg",), background={"fg": "bg"}, accounting="no",
        agents={"key": str(key), "address": f"unix:{tmp_path}/nobody"},
    )  # fmt: skip
    with SlurmAdapter(options, read_only=True, transport=slurm) as one:
        (found,) = [check for check in one.check() if check.subject == "two tiers"]
    return found


@pytest.mark.parametrize(
    ("front", "behind", "out"),
    [
        ("", "", ""),
        # Who.
        ("AllowGroups=physics", "AllowGroups=chemistry,physics", ""),
        ("AllowGroups=chemistry,physics", "AllowGroups=physics,chemistry", ""),
        ("AllowGroups=chemistry,physics", "AllowGroups=physics", "AllowGroups=physics"),
        ("AllowGroups=physics", "AllowGroups=chemistry", "AllowGroups=chemistry"),
        ("AllocNodes=login[1-2]", "AllocNodes=login[1-4]", ""),
        ("AllocNodes=login[1-4]", "AllocNodes=login[1-2]", "AllocNodes=login[1-2]"),
        ("", "AllowAccounts=a", "AllowAccounts=a"),
        ("AllowAccounts=a", "AllowAccounts=a,b", ""),
        ("DenyAccounts=a,b", "DenyAccounts=b", ""),
        ("DenyAccounts=b", "DenyAccounts=a,b", "DenyAccounts=a,b"),
        ("AllowAccounts=a", "DenyAccounts=b", ""),
        ("AllowAccounts=a,b", "DenyAccounts=b", "DenyAccounts=b"),
        ("AllowQos=normal", "AllowQos=normal,long", ""),
        ("AllowQos=normal,long", "AllowQos=normal", "AllowQos=normal"),
        ("", "DenyQos=long", "DenyQos=long"),
        ("", "ReqResv=YES", "ReqResv=YES"),
        ("ReqResv=YES", "ReqResv=YES", ""),
        # How large: both have two nodes.
        ("", "MaxNodes=1", "MaxNodes=1"),
        ("", "MaxNodes=2", ""),
        ("MaxNodes=1", "MaxNodes=1", ""),
        ("", "MinNodes=2", "MinNodes=2"),
        ("", "MinNodes=1", ""),
        ("MinNodes=2", "MinNodes=2", ""),
        ("", "MaxCPUsPerNode=2", "MaxCPUsPerNode=2"),
        ("", "MaxMemPerNode=100", "MaxMemPerNode=100"),
        ("MaxMemPerCPU=100", "MaxMemPerCPU=200", ""),
        # How long.
        ("MaxTime=01:00:00", "MaxTime=1-00:00:00", ""),
        ("MaxTime=1-00:00:00", "MaxTime=01:00:00", "MaxTime of 60 minutes"),
        ("", "MaxNodes=1 AllowGroups=x MaxTime=02:00:00",
         "AllowGroups=x, MaxTime of 120 minutes, MaxNodes=1"),
    ],
)  # fmt: skip
def test_what_keeps_jobs_out_is_told(tmp_path: Path, front: str, behind: str, out: str) -> None:
    found = two_tiers(tmp_path, front, behind)
    said = f"Slurm refuses jobs of fg in bg: {out}" if out else "jobs share processors in fg, bg"
    assert (found.ok, found.detail) == (not out, said)
    assert not out or found.remedy.startswith("give bg what fg has")


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_partition_that_is_closed_is_told(tmp_path: Path, state: str) -> None:
    found = two_tiers(tmp_path, "", f"State={state}")
    assert (found.ok, found.detail) == (False, "Slurm starts nothing in bg, which is closed")
    assert found.remedy == "scontrol update PartitionName=bg State=UP"
    assert found.driving, "to watch, no job goes to the background"


@pytest.mark.parametrize(("front", "told"), [("", True), ("QoS=idle", False)])
def test_the_limits_of_its_qos_are_not_looked_at(tmp_path: Path, front: str, told: bool) -> None:
    found = two_tiers(tmp_path, front, "QoS=idle")
    assert found.ok
    assert found.detail == "jobs share processors in fg, bg" + (
        " (the limits of the QoS idle of bg are not checked)" if told else ""
    )
