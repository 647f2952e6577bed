"""How many processors a job of PBS or Torque had, by what its record tells."""

from __future__ import annotations

import pytest

from headway.workload import Column
from headway.workload import trace as kinds
from headway.workload.accounting import accounted_trace

RECORD = "04/05/2017 13:06:53;E;1.srv;user=u queue=short ctime=100 start=107 {} end=213 Exit_status=0\n"


@pytest.mark.parametrize(
    ("words", "processors"),
    [
        # Torque
        ("exec_host=n1/1+n1/0+n2/1+n2/0 Resource_List.ncpus=1 Resource_List.nodes=2:ppn=2", 4),
        ("exec_host=n3/0 Resource_List.nodes=1", 1),
        ("exec_host=n1/0-3+n2/0,2,5-6", 8),
        ("Resource_List.ncpus=1 Resource_List.nodes=2:ppn=4", 8),
        ("Resource_List.nodes=1:ppn=4:big+2:ppn=8", 20),
        ("Resource_List.nodes=n17:ppn=3+n18", 4),
        ("Resource_List.nodes=2 total_execution_slots=2 unique_node_count=2", 2),
        ("Resource_List.procs=12", 12),
        # PBS
        ("exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 Resource_List.nodect=2", 8),
        ("exec_host=n1/0 Resource_List.ncpus=1", 1),
        ("Resource_List.ncpus=16", 16),
        # What is not as it should be does not count.
        ("exec_host=n1 Resource_List.ncpus=3", 3),
        ("exec_host=n1/a+n2/1 Resource_List.nodes=2:ppn=x Resource_List.ncpus=2", 2),
        ("", -1),
    ],
)
def test_of_slots_before_what_was_asked_for(words, processors):
    (record,) = accounted_trace(RECORD.format(words), "log").records
    assert record[Column.ALLOCATED] == record[Column.REQUESTED] == processors


def test_a_line_that_is_broken_costs_itself_alone():
    text = "rubbish\n" + RECORD.format("Resource_List.ncpus=2") + RECORD.format("Resource_List.ncpus=zwei")
    trace = accounted_trace(text, "log", strict=False)
    assert (len(trace), trace.summary()) == (1, {kinds.RECORD: 2})
    assert trace.issues[1].text == "Resource_List.ncpus: expected a number from 0 on, found 'zwei'"
