"""Switches and jobs' bounds on them, as Slurm writes them."""

from __future__ import annotations

import pytest

from headway import decisions as d
from headway.model import SwitchDescription
from headway_adapters.slurm import writer
from headway_adapters.slurm.reader import Detail, JobRecord, read_bounds, read_topology
from headway_adapters.slurm.reader.topology import bound_of

#: As Slurm 22.05.8 prints it.
TREE = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=node[1-2]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=node[3-4]
SwitchName=top Level=1 LinkSpeed=1 Nodes=node[1-4] Switches=s[0-1]
"""


def test_switches_are_read():
    notes: set[str] = set()
    assert read_topology(TREE, notes) == (
        SwitchDescription("s0", ("node1", "node2")),
        SwitchDescription("s1", ("node3", "node4")),
        SwitchDescription("top", (), ("s0", "s1")),
    )
    assert notes == set()


def test_blocks_are_leaf_switches():
    text = (
        "BlockName=b0 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=n3 BlockSize=2\n"
    )
    assert read_topology(text, set()) == (
        SwitchDescription("b0", ("n1", "n2")),
        SwitchDescription("b1", ("n3",)),
    )


def test_a_switch_that_cannot_be_read_is_left_out_with_a_word():
    notes: set[str] = set()
    assert read_topology("SwitchName=s0 Nodes=n[1-\nSwitchName=s1 Nodes=n2\n", notes) == (
        SwitchDescription("s1", ("n2",)),
    )
    (note,) = notes
    assert note.startswith("scontrol show topology: SwitchName 's0' is left out")


def test_bounds_are_read_from_the_text():
    text = "      1      0     5:00\n     12      2  1:00:00\n     13      1  UNLIMITED\nodd line\n 14 x 5\n"
    assert read_bounds(text) == {12: (2, 3600.0), 13: (1, None)}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (JobRecord(job_id=12), (2, 60.0)),
        (JobRecord(job_id=13), (0, None)),
        (JobRecord(job_id=12, minimum_switches=3, maximum_switch_wait_time=300), (3, 300.0)),
        (
            JobRecord(
                job_id=13,
                minimum_switches={"set": True, "infinite": False, "number": 1},
                maximum_switch_wait_time={"set": True, "infinite": True, "number": 0},
            ),
            (1, None),
        ),
    ],
)
def test_the_json_comes_before_the_text(record, expected):
    assert bound_of(record, {12: (2, 60.0)}) == expected


def test_a_start_gives_a_bound_up():
    detail = Detail(held=True, record="7")
    start = d.Start("7", (("n1", 1), ("n3", 1)))
    assert "Switches=1@0" in writer.start(start, detail, "batch", bound=1).steps[0]
    assert not any("Switches" in word for word in writer.start(start, detail, "batch").steps[0])
