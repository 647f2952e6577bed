"""Which nodes a job gets under each placement plugin."""

from __future__ import annotations

import pytest
from building import PLACES

from headway.model import NodeDescription, Request
from headway.resources import NodeTable, Offer


@pytest.fixture
def table():
    """Four nodes of 4 processors with 4, 1, 2 and 3 of them free."""
    table = NodeTable()
    for at, taken in enumerate((0, 3, 2, 1)):
        table.put(NodeDescription(f"n{at}", 4, pools=("p",)))
        if taken:
            table.take(Request(taken, 1), ((f"n{at}", taken),))
    return table


def placed(name, table, request):
    slots = table.slots(request, table.eligible(request, "p"), table.free)
    return PLACES[name]().place(Offer(table, request, slots, table.free))


@pytest.mark.parametrize(
    ("request_", "first", "best"),
    [
        (Request(1, 1), (("n0", 1),), (("n1", 1),)),
        (Request(2, 1), (("n0", 2),), (("n1", 1), ("n2", 1))),
        (Request(2, 1, nodes=1), (("n0", 2),), (("n2", 2),)),
        (Request(3, 1, nodes=1), (("n0", 3),), (("n3", 3),)),
        (Request(4, 1, nodes=2), (("n0", 3), ("n1", 1)), (("n2", 2), ("n3", 2))),
        (Request(1, 1, exclusive=True), (("n0", 4),), (("n0", 4),)),
        (
            Request(10, 1),
            (("n0", 4), ("n1", 1), ("n2", 2), ("n3", 3)),
            (("n0", 4), ("n1", 1), ("n2", 2), ("n3", 3)),
        ),
        (Request(11, 1), None, None),
    ],
)
def test_the_nodes_that_a_job_gets(table, request_, first, best):
    assert placed("first-fit", table, request_) == first
    assert placed("best-fit", table, request_) == best


def test_best_fit_takes_equals_in_the_clusters_order():
    table = NodeTable()
    for at in range(5):
        table.put(NodeDescription(f"n{at}", 4, pools=("p",)))
    assert placed("best-fit", table, Request(6, 1)) == (("n0", 4), ("n1", 2))
