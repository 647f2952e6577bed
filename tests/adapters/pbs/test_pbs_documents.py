"""PBS's listings in their three forms, also damaged."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import FIXTURES, QUEUES, recorded, recorded_jobs, stdout

from headway_adapters.pbs import cluster, documents, dsv, torque


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.json")))
def test_every_recorded_listing_is_read(name: str) -> None:
    record = recorded(name)
    data, argv = stdout(name), record["argv"]
    if argv[0] == "pbsnodes":
        found = documents.nodes_json(data) if "json" in argv else documents.nodes_text(data)
        assert list(found) == ["pbshost", *(f"pbshost[{at}]" for at in range(4))]
    elif "-Q" in argv:
        assert list(documents.objects_json(data, "Queue")) == ["workq", "R5"]
    elif "-B" in argv:
        assert documents.objects_json(data, "Server")["pbshost"]["scheduling"] == "False"
    elif argv[0] == "qstat":
        jobs = dsv.jobs(data, dsv.separator_of(tuple(argv))) if "dsv" in argv else recorded_jobs(name)
        assert all(record.job_state for record in jobs.values())
        assert bool(jobs) == (record["rc"] == 0)
    else:
        assert argv[0] in ("qrun", "pbs_rstat")


def test_the_text_form_says_the_same_about_vnodes() -> None:
    by_form = [
        cluster.read_nodes(documents.nodes_json(stdout("pbsnodes_json")), QUEUES, set()),
        cluster.read_nodes(documents.nodes_text(stdout("pbsnodes_text")), QUEUES, set()),
    ]
    assert by_form[0] == by_form[1]


def test_control_characters_and_wrong_bytes_in_json_are_read_all_the_same() -> None:
    data = b'{"nodes": {"a": {"comment": "NAME", "state": "free"}}}'
    assert documents.nodes_json(data.replace(b"NAME", b"two\nlines"))["a"].comment == "two\nlines"
    assert documents.nodes_json(data.replace(b"NAME", b"caf\xe9"))["a"].comment == "caf\ufffd"
    assert documents.nodes_json(data.replace(b"NAME", rb"\ud800"))["a"].comment == "?"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"<html>Bad gateway</html>", b'{"nodes": {"a": {"np": 007}}}', b'{"nodes": [1, 2]}',
        b'{"nodes": {"a": {"comment": "a"b"}}}', b'{"nodes": {"a"', b"[]", b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_is_no_json_listing_is_refused(data: bytes) -> None:
    with pytest.raises(documents.Malformed):
        documents.nodes_json(data)


def test_a_text_listing_that_was_cut_is_refused() -> None:
    data = stdout("pbsnodes_text")
    for at in range(100, len(data) - 1, 997):
        if not data[:at].endswith(b"\n\n"):
            with pytest.raises(documents.Malformed, match="in the middle"):
                documents.nodes_text(data[:at])


TORQUE_JOBS = b"""<Data><Job><Job_Id>7.head</Job_Id><Job_Name>a&lt;b</Job_Name><Job_Owner>bob@head</Job_Owner>
<job_state>R</job_state><queue>batch</queue><ctime>1795242700</ctime><exec_host>n1/0-3+n2/0-3</exec_host>
<Hold_Types>n</Hold_Types><Resource_List><nodes>2:ppn=4</nodes><walltime>01:00:00</walltime></Resource_List>
<start_time>1795242748</start_time><Variable_List>PBS_O_HOME=/home/bob,HEADWAY=malleable</Variable_List></Job>
<Job><Job_Id>8[2].head</Job_Id><job_state>Q</job_state><queue>batch</queue></Job></Data>"""
TORQUE_NODES = b"""<Data>
<Node><name>n1</name><state>job-exclusive</state><np>4</np><properties>ib,fast</properties>
<ntype>cluster</ntype><jobs>0-3/7.head</jobs><status>rectime=1795242860,physmem=8388608kb,ncpus=4</status></Node>
<Node><name>n2</name><state>down,offline</state><np>4</np><note>disk</note><gpus>2</gpus></Node></Data>"""


def test_torques_xml() -> None:
    jobs = torque.jobs(TORQUE_JOBS)
    assert list(jobs) == ["7.head", "8[2].head"]
    assert jobs["7.head"].Job_Name == "a<b"
    assert jobs["7.head"].Resource_List == {"nodes": "2:ppn=4", "walltime": "01:00:00"}
    assert jobs["7.head"].Variable_List == documents.Variables("malleable")
    assert torque.nodes(TORQUE_NODES)["n2"].gpus == "2"
    assert torque.jobs(b"") == {}


@pytest.mark.parametrize(
    "data",
    [
        b'<!DOCTYPE d [<!ENTITY a "aaaa">]><Data><Job><Job_Id>&a;</Job_Id></Job></Data>',
        b"<Data><Job><Job_Id>1.s</Job_Id>", b"not at all",
    ],
)  # fmt: skip
def test_xml_that_is_cut_grows_or_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(documents.Malformed):
        torque.jobs(data)


@given(st.binary(max_size=300), st.sampled_from([b"", b"{", b"a\n    "]))
def test_no_bytes_make_a_reader_fail_in_another_way(data: bytes, head: bytes) -> None:
    for parse in (documents.nodes_json, documents.nodes_text, documents.timestamp_json):
        with contextlib.suppress(documents.Malformed):
            parse(head + data)
