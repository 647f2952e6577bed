"""PBS's listings in their three forms, also damaged."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import FIXTURES, QUEUES, job, listing, recorded, stdout

from headway_adapters.pbs import documents, reader


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.json")))
def test_every_recorded_listing_is_read(name: str) -> None:
    record = recorded(name)
    data, argv = record["stdout"].encode(), record["argv"]
    if argv[0] == "pbsnodes":
        found = documents.nodes_json(data) if "json" in argv else documents.nodes_text(data)
        assert list(found) == ["pbshost", *(f"pbshost[{at}]" for at in range(4))]
    elif "-Q" in argv:
        assert list(documents.objects_json(data, "Queue")) == ["workq", "R5"]
    elif "-B" in argv:
        assert documents.objects_json(data, "Server")["pbshost"]["scheduling"] == "False"
    elif argv[0] == "qstat":
        jobs = documents.jobs_json(data) if "json" in argv else documents.jobs_text(data)
        assert all(record.job_state for record in jobs.values())
        assert bool(jobs) == (record["rc"] == 0)
    else:
        assert argv[0] in ("qrun", "pbs_rstat")


def test_the_text_form_says_the_same_about_jobs() -> None:
    as_json = documents.jobs_json(stdout("qstat_full_json"))
    as_text = documents.jobs_text(stdout("qstat_full_text"))
    assert sorted(as_json) == sorted(as_text)
    for name in ("job_state", "queue", "ctime", "exec_vnode", "Hold_Types", "depend", "schedselect", "euser"):
        assert [getattr(as_json[key], name) for key in sorted(as_json)] == [
            getattr(as_text[key], name) for key in sorted(as_text)
        ]


def test_the_text_form_says_the_same_about_vnodes() -> None:
    by_form = [
        reader.read_nodes(documents.nodes_json(stdout("pbsnodes_json")), QUEUES, set()),
        reader.read_nodes(documents.nodes_text(stdout("pbsnodes_text")), QUEUES, set()),
    ]
    assert by_form[0] == by_form[1]


@pytest.mark.parametrize(
    "name",
    ["two\nlines", "a bell \x07", "tab\there", 'a "quote"', "back\\slash", "$(reboot)", "; rm -rf /", "ü"],
)
def test_names_that_users_give_are_read_as_they_are(name: str) -> None:
    found = documents.jobs_json(listing({"1.s": job(Job_Name=name)}))
    assert found["1.s"].Job_Name == name


def test_control_characters_and_wrong_bytes_in_json_are_read_all_the_same() -> None:
    data = listing({"1.s": job(Job_Name="NAME", Variable_List={"A": "VALUE", "HEADWAY": "malleable"})})
    raw = documents.jobs_json(data.replace(b"NAME", b"two\nlines").replace(b"VALUE", b"\xff\x01"))
    assert raw["1.s"].Job_Name == "two\nlines"
    assert raw["1.s"].Variable_List == documents.Variables("malleable")
    alone = documents.jobs_json(data.replace(b"NAME", b"caf\xe9"))
    assert alone["1.s"].Job_Name == "caf\ufffd"
    half = documents.jobs_json(data.replace(b"NAME", rb"\ud800"))
    assert half["1.s"].Job_Name == "?"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"<html>Bad gateway</html>", b'{"Jobs": {"1.s": {"Job_Name": 007}}}', b'{"Jobs": [1, 2]}',
        b'{"Jobs": {"1.s": {"Job_Name": "a"b"}}}', b'{"Jobs": {"1.s"', b"[]", b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_is_no_json_listing_is_refused(data: bytes) -> None:
    with pytest.raises(documents.Malformed):
        documents.jobs_json(data)


@pytest.mark.parametrize("form", ["qstat_full_text", "pbsnodes_text"])
def test_a_text_listing_that_was_cut_is_refused(form: str) -> None:
    data = stdout(form)
    parse = documents.jobs_text if form.startswith("qstat") else documents.nodes_text
    for at in range(100, len(data) - 1, 997):
        if not data[:at].endswith(b"\n\n"):
            with pytest.raises(documents.Malformed, match="in the middle"):
                parse(data[:at])


def test_text_that_is_no_listing_is_refused() -> None:
    with pytest.raises(documents.Malformed, match="expected a listing"):
        documents.jobs_text(b"Welcome to the cluster!\n\n")
    assert documents.jobs_text(b"") == {}


def test_a_line_break_in_a_value_changes_no_attribute_before_it() -> None:
    data = (
        b"Job Id: 1.s\n    Job_Name = x\n    job_state = Q\n"
        b"    Variable_List = A=1,\n\tHEADWAY=dedicated,B=\n"
        b"    job_state = R\n    exec_vnode = (a:ncpus=8)\n\n"
    )
    record = documents.jobs_text(data)["1.s"]
    assert record.job_state == "Q"
    assert record.Variable_List == documents.Variables("dedicated")


def test_a_comma_within_a_variable_ends_nothing() -> None:
    data = b"Job Id: 1.s\n    Variable_List = A=x\\,HEADWAY=no,HEADWAY=malleable\\,dedicated\n\n"
    assert documents.jobs_text(data)["1.s"].Variable_List == documents.Variables("malleable,dedicated")


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
    jobs = documents.jobs_xml(TORQUE_JOBS)
    assert list(jobs) == ["7.head", "8[2].head"]
    assert jobs["7.head"].Job_Name == "a<b"
    assert jobs["7.head"].Resource_List == {"nodes": "2:ppn=4", "walltime": "01:00:00"}
    assert jobs["7.head"].Variable_List == documents.Variables("malleable")
    assert documents.nodes_xml(TORQUE_NODES)["n2"].gpus == "2"
    assert documents.jobs_xml(b"") == {}


@pytest.mark.parametrize(
    "data",
    [
        b'<!DOCTYPE d [<!ENTITY a "aaaa">]><Data><Job><Job_Id>&a;</Job_Id></Job></Data>',
        b"<Data><Job><Job_Id>1.s</Job_Id>", b"<Data>&nbsp;</Data>", b"not at all", b"<Data>\x01</Data>",
    ],
)  # fmt: skip
def test_xml_that_is_cut_grows_or_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(documents.Malformed):
        documents.jobs_xml(data)


@given(st.dictionaries(st.text(), st.text()), st.text())
def test_whatever_users_type_the_job_beside_is_read(variables: dict[str, str], name: str) -> None:
    jobs = {"1.s": job(Job_Name=name, Variable_List=variables), "2.s": job(Job_Name="beside")}
    found = documents.jobs_json(json.dumps({"Jobs": jobs}).encode())
    assert found["1.s"].Job_Name == name
    assert found["2.s"].Job_Name == "beside"


@given(st.binary(max_size=300), st.sampled_from([b"", b"{", b"Job Id: 1.s\n    ", b"<Data>"]))
def test_no_bytes_make_a_reader_fail_in_another_way(data: bytes, head: bytes) -> None:
    for parse in (
        documents.jobs_json, documents.nodes_json, documents.jobs_text, documents.nodes_text,
        documents.jobs_xml, documents.nodes_xml, documents.timestamp_json,
    ):  # fmt: skip
        with contextlib.suppress(documents.Malformed):
            parse(head + data)
