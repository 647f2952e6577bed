"""The commands that start a heterogeneous job's components together, and take that back."""

from __future__ import annotations

import pytest

from headway import decisions as d
from headway_adapters.polling.words import Unfit
from headway_adapters.slurm import hostlist, together
from headway_adapters.slurm.reader import Detail

POOL = ["n1", "n2", "n3", "n4", "n5"]
PARTS = (
    ("7", Detail(held=True, excluded=("n9",))),
    ("8", Detail(held=True, excluded=("n5",), node_list=("n2",))),
    ("9", Detail(held=True, least_nodes=2, most_nodes=2)),
)
DETAIL = Detail(held=True, record="7", parts=PARTS)
PLACEMENTS = [(("n4", 1),), (("n2", 2),), (("n1", 4), ("n3", 4))]


def start(detail: Detail = DETAIL, placements: list = PLACEMENTS, **more: bool):  # type: ignore[no-untyped-def]
    whole = tuple(pair for placement in placements for pair in placement)
    return together.start(d.Start("7", whole), detail, placements, POOL, **{"reserved": False, **more})


def test_the_leader_is_sent_by_exclusion_and_the_others_by_their_node_lists() -> None:
    steps, pins = start()
    assert steps.leader[:3] == ("scontrol", "update", "JobId=7")
    assert sorted(hostlist.expand(steps.leader[3].partition("=")[2])) == ["n1", "n2", "n3", "n5", "n9"]
    assert pins[0].excluded == (("n9",), ("n5",), ())
    assert steps.leader[-1] == f"AdminComment={pins[0].text()}"
    second, third = steps.others
    assert second[2:5] == ("JobId=8", "ReqNodeList=n2", "NumNodes=1-1") and second[-1] == "ExcNodeList=n5"
    assert third[2:4] == ("JobId=9", "ReqNodeList=n[1,3]") and third[-1] == "ExcNodeList="
    assert [pin.nodes for pin in pins] == [("n4",), ("n2",), ("n1", "n3")]


def test_what_is_taken_back_is_held_and_as_their_users_asked_for_it() -> None:
    _, pins = start()
    steps = together.restore(DETAIL, "7", pins, mark=True)
    assert steps.leader == (
        "scontrol", "update", "JobId=7", "Priority=0", "ExcNodeList=n9", "AdminComment=headway:held",
    )  # fmt: skip
    assert [(argv[2], argv[3], argv[-1]) for argv in steps.others] == [
        ("JobId=8", "ReqNodeList=n2", "ExcNodeList=n5"),
        ("JobId=9", "ReqNodeList=", "ExcNodeList="),
    ]


def test_one_that_has_a_reservation_of_its_own_enters_and_leaves_it() -> None:
    steps, pins = start(reserved=True)
    assert any(word.startswith("ReservationName=") and "job_7" in word for word in steps.leader)
    assert "ReservationName=" in together.restore(DETAIL, "7", pins, mark=True).leader


@pytest.mark.parametrize(
    ("placements", "why"),
    [
        ([(("n4", 1),), (("n2", 2),)], "nodes for each of its components"),
        ([(("n4", 1),), (("n2", 2),), ()], "nodes for each of its components"),
        ([(("n4", 1),), (("n2", 2),), (("n4", 3),)], "nodes of its own"),
        ([(("n4", 1),), (("n3", 2),), (("n1", 3),)], "its user also asked for n2"),
        ([(("n8", 1),), (("n2", 2),), (("n1", 3),)], "its partition has no node n8"),
        ([(("n4;reboot", 1),), (("n2", 2),), (("n1", 3),)], "the name of a node"),
    ],
)
def test_what_is_no_start_of_all(placements: list, why: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(Unfit, match=why):
        start(placements=placements)
