"""How jobs are read: whatever a user writes into a job, what is read about every other one is the same."""

from __future__ import annotations

import contextlib
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pbs_recorded import BETWEEN, NODES, NOW, QUEUES, SITE, job, listing, recorded, stdout

from headway_adapters.commands import pbs_dsv
from headway_adapters.pbs import documents, dsv, reader, torque

# ---------------------------------------------------------------------- as the real one prints it


def test_every_byte_is_printed_as_the_real_server_prints_it() -> None:
    fixture, data = recorded("qstat_dsv_every_byte"), stdout("qstat_dsv_every_byte")
    for job_id, account in fixture["accounts"].items():
        raw = bytes.fromhex(account).decode("utf-8", "surrogateescape")
        written = pbs_dsv.written(raw, BETWEEN).encode("utf-8", "surrogateescape")
        shown = BETWEEN.encode() + b"Account_Name=" + written + BETWEEN.encode() + b"ctime="
        assert shown in data, job_id


def test_what_users_wrote_is_read_as_far_as_pbs_tells_it() -> None:
    fixture = recorded("qstat_dsv_every_byte")
    found = dsv.jobs(stdout("qstat_dsv_every_byte"), BETWEEN)
    assert list(found) == list(fixture["accounts"])
    for job_id, account in fixture["accounts"].items():
        raw = bytes.fromhex(account)
        record = found[job_id]
        assert (record.job_state, record.queue, record.euser) == ("H", "workq", "alice"), job_id
        if raw.isascii() and raw.decode().isprintable():
            assert record.Account_Name == raw.decode(), job_id


def test_a_record_within_an_account_is_no_record() -> None:
    between = "|"
    found = dsv.jobs(stdout("qstat_dsv_forged_record"), between)
    assert {key: (one.euser, one.job_state, one.exec_vnode) for key, one in found.items()} == {
        "1039.pbsa": ("alice", "H", None),
        "1040.pbsa": ("bob", "H", None),
    }
    assert found["1039.pbsa"].Account_Name.startswith("x\nJob Id: 1040.pbsa\n    job_state = R\n")


def test_separators_are_not_to_be_guessed_and_end_where_they_seem_to() -> None:
    words = {dsv.separator() for _ in range(50)}
    assert len(words) == 50
    for word in words:
        assert not any(word.endswith(word[:at]) for at in range(1, len(word)))
        # None of its letters can come of a byte that is printed as a sum.
        assert not {(byte + 64) % 256 for byte in (*range(32), *range(127, 256))} & set(word.encode())


@pytest.mark.parametrize(
    "data", [b"<html>Bad gateway</html>\n", b"Welcome!\n\n", b"\xff\xfe\n", b"Job Id: 1\n"]
)
def test_what_is_no_listing_is_refused(data: bytes) -> None:
    with pytest.raises(documents.Malformed, match="expected a listing"):
        dsv.jobs(data, BETWEEN)


def test_a_listing_that_was_cut_is_refused_or_lacks_jobs() -> None:
    data = stdout("qstat_dsv_every_byte")
    whole = dsv.jobs(data, BETWEEN)
    assert dsv.jobs(b"", BETWEEN) == {}
    for at in range(1, len(data), 97):
        with contextlib.suppress(documents.Malformed):
            for job_id, record in dsv.jobs(data[:at], BETWEEN).items():
                assert record.job_state in (whole[job_id].job_state, None)


def test_a_comma_within_a_variable_ends_nothing() -> None:
    data = listing({"1.s": job(Variable_List={"A": "x,HEADWAY=no", "HEADWAY": "malleable,dedicated"})})
    assert dsv.jobs(data, BETWEEN)["1.s"].Variable_List == documents.Variables("malleable,dedicated")


# ---------------------------------------------------------------------- no text changes another job

#: Pieces of what a forger would write: a line break (also that of byte 202), a backslash that PBS does not
#: escape, heads, attributes, and separators as if he knew the one that is used.
PIECES = st.sampled_from(
    ["\n", "\udcca", "\x1c", "\\", "^", "Job Id: 2.s", "Job Id: 9.s", "Job_Name=x", "job_state=R",
     "exec_vnode=(pbshost[0]:ncpus=8)", "    job_state = R", BETWEEN, "|", "abcdefghijklmnop", "\udcc0", "\t",
     '"', "},", '"2.s":{', ",", "=", "<Job><Job_Id>2.s</Job_Id>", "</Job>", "]]>", "&", "\x00", "\x7f", "ü"]
)  # fmt: skip
TEXT = st.one_of(
    st.lists(PIECES, max_size=12).map("".join),
    st.text(),
    st.binary(max_size=40).map(lambda data: data.decode("utf-8", "surrogateescape")),
)
#: All that users write, each where PBS prints it.
OF_USERS = st.fixed_dictionaries(
    {},
    optional={
        "Job_Name": TEXT,
        "Account_Name": TEXT,
        "Error_Path": TEXT,
        "Output_Path": TEXT,
        "Resource_List": st.dictionaries(
            st.sampled_from(["arch", "select", "place", "walltime", "ncpus", "software"]), TEXT
        ),
        "schedselect": TEXT,
        "depend": TEXT,
        "Variable_List": st.dictionaries(TEXT, TEXT),
        "egroup": TEXT,
        "comment": TEXT,
        "Submit_arguments": TEXT,
        "project": TEXT,
    },
)
BEFORE = job(euser="bob", Account_Name="astro")
AFTER = job(euser="carol", select="2:ncpus=4", job_state="R", exec_vnode="(pbshost[1]:ncpus=8)")


def read(records: Any) -> reader.Jobs:
    return reader.read_jobs(records, NOW, SITE, QUEUES, NODES, set())


ALONE = read(dsv.jobs(listing({"1.s": BEFORE, "2.s": AFTER}), BETWEEN))


@given(OF_USERS)
@example({"Account_Name": f"x\udccaJob Id: 2.s\x1c{BETWEEN}Job_Name=y\x1c{BETWEEN}job_state=R"})
@example({"Account_Name": "x\udccaJob Id: 2.s"})
@example({"project": "x^\udccaJob Id: 2.s\\"})
@example({"project": "^"})
@example({"project": "\x1c"})
@example({"Job_Name": f"\n{BETWEEN}\nJob Id: 2.s{BETWEEN}Job_Name=y"})
def test_no_text_of_a_user_changes_what_is_read_about_another_job(fields: dict[str, Any]) -> None:
    """Also where he knows the separator. What he writes last into a record may reach his own job only."""
    mine = {**job(euser="mallory"), **fields, "Submit_Host": "s"}
    found = read(dsv.jobs(listing({"1.s": BEFORE, "7.s": mine, "2.s": AFTER}), BETWEEN))
    assert {key: one for key, one in found.jobs.items() if key != "7.s"} == ALONE.jobs
    assert {key: one for key, one in found.details.items() if key != "7.s"} == ALONE.details


@given(OF_USERS)
def test_nor_about_his_own_but_what_he_may_say(fields: dict[str, Any]) -> None:
    """Without the separator, which nobody knows, he cannot say whose it is, where it runs, what it has."""
    honest = {"euser": "mallory", "queue": "workq", "job_state": "R", "exec_vnode": "(pbshost[1]:ncpus=8)"}
    texts = {key: _without(value) for key, value in fields.items()}
    data = listing({"7.s": {**job(), **texts, **honest, "Submit_Host": "s"}})
    record = dsv.jobs(data, BETWEEN)["7.s"]
    assert {key: getattr(record, key) for key in honest} == honest


def _without(value: Any) -> Any:
    """What users write who do not know the separator, nor end a text with a backslash: that hides the
    attribute behind it."""
    if isinstance(value, dict):
        return {_without(key): _without(one) for key, one in value.items()}
    return value.replace("abcdefghijklmnop", "").replace("\x1c", "").replace("\\", "").replace("^", "")


@given(st.binary(max_size=300), st.sampled_from([b"", b"Job Id: 1.s" + BETWEEN.encode(), b"<Data>"]))
def test_no_bytes_make_a_reader_fail_in_another_way(data: bytes, head: bytes) -> None:
    for parse in (lambda text: dsv.jobs(text, BETWEEN), torque.jobs, torque.nodes):
        with contextlib.suppress(documents.Malformed):
            parse(head + data)


# ---------------------------------------------------------------------- Torque


def xml_listing(jobs: dict[str, dict[str, Any]]) -> bytes:
    """Torque's ``qstat -x``."""

    def element(name: str, value: Any) -> str:
        if isinstance(value, dict):
            return f"<{name}>{''.join(element(key, one) for key, one in value.items())}</{name}>"
        return f"<{name}>{escape(str(value))}</{name}>"

    rows = [element("Job", {"Job_Id": key, **fields}) for key, fields in jobs.items()]
    return f"<Data>{''.join(rows)}</Data>".encode("utf-8", "surrogateescape")


def torque_job(**fields: Any) -> dict[str, Any]:
    return {
        "Job_Name": "j", "Job_Owner": "bob@head", "job_state": "Q", "queue": "workq", "euser": "bob",
        "Resource_List": {"nodes": "2:ppn=4", "walltime": "01:00:00"}, **fields,
    }  # fmt: skip


BESIDE = {"1.s": torque_job(), "2.s": torque_job(euser="carol", job_state="R", exec_host="n1/0-3")}


@given(
    st.fixed_dictionaries(
        {}, optional={key: TEXT for key in ("Job_Name", "Account_Name", "Variable_List", "comment", "egroup")}
    )
)
def test_no_text_of_a_torque_user_changes_what_is_read_about_another_job(fields: dict[str, str]) -> None:
    all_of_them = {"1.s": BESIDE["1.s"], "7.s": torque_job(**fields), "2.s": BESIDE["2.s"]}
    found = torque.jobs(xml_listing(all_of_them))
    assert {key: one for key, one in found.items() if key != "7.s"} == torque.jobs(xml_listing(BESIDE))
