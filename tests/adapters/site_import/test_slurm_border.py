"""What of Slurm's files is easily lost: included files, overlaps, billing, limits of submission."""

from __future__ import annotations

from pathlib import Path

import pytest
from imports import broken, made, said

CONF = """SelectType=select/cons_tres
PriorityWeightFairShare=100
"""


def conf(text: str) -> str:
    return CONF + text


def of(found: list[str], number: int) -> list[str]:
    """What is said of a line."""
    return [text.partition(": ")[2] for text in found if text.partition(": ")[0].endswith(f":{number}")]


@pytest.mark.parametrize("line", ["include {}", "INCLUDE  {}  # nodes", 'Include "{}"'])
def test_what_is_in_an_included_file_counts(tmp_path: Path, line: str) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "nodes.conf").write_text("NodeName=n[1-4] CPUs=8\ninclude deeper.conf\n")
    (tmp_path / "more" / "deeper.conf").write_text("NodeName=m[1-2] CPUs=16\n")
    main = str(tmp_path / "slurm.conf")
    text = f"NodeName=DEFAULT Feature=ib\n{line.format('more/nodes.conf')}\nPartitionName=a Nodes=ALL\n"
    found = made("slurm", **{main: text})
    kinds = [(kind["count"], kind["processors"], kind["features"]) for kind in found.emulation["nodes"]]
    assert kinds == [(4, 8, ["ib"]), (2, 16, ["ib"])] and found.remarks == []


def test_an_included_file_that_is_given_as_well_counts_once(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("NodeName=n[1-4] CPUs=8\n")
    texts = {str(tmp_path / "slurm.conf"): "include nodes.conf\nPartitionName=a Nodes=ALL\n",
             str(tmp_path / "nodes.conf"): "NodeName=n[1-4] CPUs=8\n"}  # fmt: skip
    assert [kind["count"] for kind in made("slurm", **texts).emulation["nodes"]] == [4]


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    main = tmp_path / "slurm.conf"
    (tmp_path / "b.conf").write_text("NodeName=n1 CPUs=8\ninclude slurm.conf\ninclude b.conf\n")
    main.write_text("include b.conf\nPartitionName=a Nodes=ALL\n")
    assert made("slurm", **{str(main): main.read_text()}).emulation["nodes"][0]["count"] == 1


def test_an_included_file_that_is_missing_is_named(tmp_path: Path) -> None:
    main = str(tmp_path / "slurm.conf")
    [text] = of(said(made("slurm", **{main: "include gone.conf\nPartitionName=a Nodes=ALL\n"})), 1)
    assert text == (
        f"gone.conf is included; give that file as well ({tmp_path / 'gone.conf'}: expected a file that can "
        "be read: No such file or directory)"
    )


def test_partitions_that_share_nodes_are_named_with_the_others_and_so_are_nodes_of_none() -> None:
    found = made("slurm", conf=conf(
        "NodeName=n[1-9] CPUs=4\nNodeName=x[1-2] CPUs=4\nPartitionName=a Nodes=n[1-4]\n"
        "PartitionName=b Default=YES Nodes=n[3-6]\nPartitionName=c Nodes=n[7-9],x1\n"
    ))  # fmt: skip
    assert of(said(found), 6) == [
        "partition b overlaps with a (2 nodes in common): a dry run has each node once, all in the pool b"
    ]
    assert of(said(found), 4) == ["1 of these nodes are in no partition: a dry run has them in b"]
    assert of(said(found), 5) == of(said(found), 7) == []


def test_a_partition_of_all_nodes_overlaps() -> None:
    found = made(
        "slurm", conf=conf("NodeName=n[1-9] CPUs=4\nPartitionName=a Nodes=n1\nPartitionName=b Nodes=ALL\n")
    )
    assert len(of(said(found), 5)) == 1 and len(said(found)) == 2


def test_weights_of_one_partition_alone_are_remarked() -> None:
    found = made("slurm", conf=conf(
        "NodeName=n1 CPUs=4\nPartitionName=a Nodes=n1 TRESBillingWeights=CPU=2\nPartitionName=b\n"
    ))  # fmt: skip
    assert found.plugins["fair-tree"]["billing"] == {"processors": 2.0}
    assert of(said(found), 4) == [
        "TRESBillingWeights: the weights of a hold for all partitions, also for b, which Slurm bills by "
        "processors"
    ]


DUMP = """Cluster - 'tc':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'chem':Fairshare=4:MaxSubmitJobs=10:GrpSubmitJobs=50
Parent - 'chem'
User - 'ann':DefaultAccount='chem':Fairshare=1:MaxSubmitJobs=-1
"""


def test_limits_of_submission_are_named_since_slurm_keeps_them() -> None:
    told = "is not carried over: Slurm itself refuses such jobs at submission"
    found = said(made("slurm", conf=conf("PartitionName=a\n"), dump=DUMP))
    assert of(found, 3)[-2:] == [f"MaxSubmitJobs=10 {told}", f"GrpSubmitJobs=50 {told}"]
    assert of(found, 5) == []
    found = said(made("slurm", qos="Name|Priority|MaxSubmitPU|GrpSubmit\nlong|10|5|\nshort|10||\n"))
    assert of(found, 2) == [f"MaxSubmitJobsPerUser=5 {told}"] and of(found, 3) == []


def test_of_a_line_with_other_columns_it_is_said_what_is_left_out() -> None:
    found = made("slurm", qos="Name|Priority|UsageFactor\nlong|10\nshort|10|1|2|3\n")
    assert [text for text in broken(found) if "columns" in text] == [
        "qos:2: expected 3 columns, found 2; QOS 'long' is left out",
        "qos:3: expected 3 columns, found 5; QOS 'short' is left out",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# A guide\n\nFirst sentence.\nSecond sentence.\n" + "More.\n" * 300,
        "[project]\n" + "".join(f'thing{n} = "x"\n' for n in range(200)),
        "".join(f"set server thing{n} = True\n" for n in range(200)),
        '{\n  "a": 1,\n  "b": 2\n}\n',
        "".join(f"{n} 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n" for n in range(200)),
    ],
    ids=["text", "toml", "qmgr", "json", "swf"],
)
def test_a_file_of_another_kind_is_one_sentence_that_says_what_was_expected(text: str) -> None:
    found = made("slurm", strange=text)
    [only] = broken(found)
    assert only.endswith(
        "expected slurm.conf, gres.conf, or what scontrol show or sacctmgr -P show prints, found a file of "
        "another kind; no line of it is read"
    )
    assert {text.partition(":")[0] for text in said(found)} == {"strange"}


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("prioritydecayhalflive=3", "'PriorityDecayHalfLife'"),
        ("SCHEDULERPARAMETER=x", "'SchedulerParameters'"),
        ("PartitionName=a MAXTIMES=3", "'MaxTime'"), ("NodeName=n1 cpu=4", "'CPUs'"),
    ],
)  # fmt: skip
def test_a_key_is_suggested_as_slurm_spells_it_whatever_the_case(line: str, meant: str) -> None:
    [text] = [text for text in said(made("slurm", conf=conf(f"{line}\n"))) if "Did you mean" in text]
    assert f"Did you mean {meant}" in text
