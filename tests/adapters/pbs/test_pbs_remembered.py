"""A listing is read as if no listing had been read before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import BETWEEN, NODES, NOW, QUEUES, SITE, job, listing

from headway_adapters.pbs import dsv, reader

#: What may be other in a job at the next look.
FIELDS: dict[str, list[Any]] = {
    "job_state": ["Q", "H", "W", "R", "T", "F", "?"],
    "Hold_Types": ["n", "u", "o", "s"],
    "depend": ["", "afterok:1.s@s", "afterany:2.s:3.s", "before:1.s", "sync:4.s"],
    "queue": ["workq", "other"],
    "select": ["1:ncpus=1", "2:ncpus=2:fpga=1", "x"],
    "place": ["free", "scatter", "excl"],
    "Job_Name": ["j", "a\nJob Id: 1.s", "b|abcdefghijklmnopJob_Name=c", "\x1f", "ü\\"],
    "Variable_List": ["", "HEADWAY=dedicated", "HEADWAY=malleable+x=1"],
    "ctime": ["Sat Nov 21 06:30:00 2026", ""],
    "Execution_Time": ["", "Sat Nov 21 06:50:00 2026"],
    "run_count": [0, 2],
    "exec_vnode": ["", "(pbshost[0]:ncpus=1)"],
    "comment": ["", "waits"],
}  # fmt: skip
IDS = ("1.s", "2.s", "3.s", "4.s", "7[].s", "7[0].s", "7[1].s", "7[2].s")
CHANGES = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.integers(0, 9), max_size=3)
LOOKS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(IDS), CHANGES, max_size=3),
        st.sets(st.sampled_from(IDS), max_size=2),
        st.sampled_from(["", "", "vnode", "queue", "words", "limit"]),
    ),
    min_size=2,
    max_size=5,
)


@given(LOOKS)
def test_a_listing_is_read_as_if_none_had_been_read_before(looks: list[Any]) -> None:
    remembered, parsed = reader.Remembered(), dsv.Parsed()
    fields: dict[str, dict[str, Any]] = {key: {} for key in IDS}
    fields["7[].s"] = {"job_state": "B", "array": "True"}
    site, queues, nodes = SITE, QUEUES, NODES
    for at, (changes, hidden, other) in enumerate(looks):
        for key, change in changes.items():
            said = {name: FIELDS[name][to % len(FIELDS[name])] for name, to in change.items()}
            fields[key] = {**fields[key], **said}
        if other == "vnode":
            last = next(iter(nodes.nodes.values()))
            turned = msgspec.structs.replace(last, available=not last.available)
            nodes = replace(nodes, nodes={**nodes.nodes, last.name: turned})
        elif other == "queue":
            turned_queue = replace(queues["workq"], open=not queues["workq"].open)
            queues = {**queues, "workq": turned_queue}
        elif other == "words":
            site = replace(site, words=site.words | {"x"})
        elif other == "limit":
            fields["7[].s"] = {**fields["7[].s"], "max_run_subjobs": 1}
        shown = {key: job(**said) for key, said in fields.items() if key not in hidden}
        between = BETWEEN if at % 2 else "|ponmlkjihgfedcba"
        data = listing(shown, between)
        noted: set[str] = set()
        anew: set[str] = set()
        records = dsv.jobs(data, between, parsed)
        fresh = dsv.jobs(data, between)
        assert records == fresh
        found = reader.read_jobs(records, NOW + at, site, queues, nodes, noted, remembered)
        expected = reader.read_jobs(fresh, NOW + at, site, queues, nodes, anew)
        assert list(found.jobs.items()) == list(expected.jobs.items())
        assert list(found.details.items()) == list(expected.details.items())
        assert noted == anew


def test_what_did_not_change_is_the_same_object() -> None:
    remembered, parsed = reader.Remembered(), dsv.Parsed()

    def look(**jobs: dict[str, Any]) -> reader.Jobs:
        records = dsv.jobs(listing({f"{key[1:]}.s": said for key, said in jobs.items()}), BETWEEN, parsed)
        return reader.read_jobs(records, NOW, SITE, QUEUES, NODES, set(), remembered)

    first = look(j1=job(), j2=job())
    second = look(j1=job(), j2=job(Priority=5))
    assert second.jobs["1.s"] is first.jobs["1.s"]
    assert second.details["1.s"] is first.details["1.s"]
    assert second.jobs["2.s"].job.priority == 5


def test_a_forged_record_is_none_whatever_was_remembered() -> None:
    parsed = dsv.Parsed()
    honest = {"1.s": job(), "2.s": job()}
    dsv.jobs(listing(honest), BETWEEN, parsed)
    forged = {"1.s": job(Account_Name=f"\nJob Id: 2.s{BETWEEN}Job_Name=x{BETWEEN}euser=root"), "2.s": job()}
    found = dsv.jobs(listing(forged), BETWEEN, parsed)
    assert list(found) == ["1.s", "2.s"]
    assert found["2.s"] == dsv.jobs(listing(honest), BETWEEN)["2.s"]
