"""A listing is read as if no listing had been read before it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_slurm_reader import NODES, NOW, PARTITIONS, RECORDS, SITE

from headway_adapters.slurm import reader
from headway_adapters.slurm.reader import record as one_record

#: What may be other in a record at the next look.
FIELDS: dict[str, list[Any]] = {
    "job_state": ["PENDING", "RUNNING", "COMPLETED", "CANCELLED", ["PENDING", "REQUEUED"], "SURPRISED"],
    "nodes": ["", "node1", "node[1-2]"],
    "priority": [0, 1, 4294901760],
    "state_reason": ["None", "JobHeldAdmin", "JobHeldUser", "Dependency"],
    "dependency": ["", "afterok:15", "after:16+3", "singleton", "aftercorr:24", "after:24_1?afterok:7", "x"],
    "array_job_id": [0, 24, 30],
    "array_task_id": [None, 0, 1, 2, 3],
    "array_task_string": ["", "0-3", "1,3%1", "0-9"],
    "array_max_tasks": [0, 1, 2],
    "het_job_id": [0, 40],
    "het_job_offset": [0, 1],
    "het_job_id_set": ["40-41"],
    "eligible_time": [0, int(NOW) - 5, int(NOW) + 2, int(NOW) + 90],
    "submit_time": [0, int(NOW) - 50],
    "end_time": [0, int(NOW) - 3],
    "comment": ["", "headway:dedicated", "headway:malleable,x=1"],
    "admin_comment": ["", "headway:held", "hold by me"],
    "features": ["", "fast", "fast|slow"],
    "tres_per_job": ["", "gres:gpu:2"],
    "max_nodes": [0, 2],
    "partition": ["batch", "fg", "other", "batch,fg"],
    "name": ["a", "b\ud800"],
    "time_limit": [None, 1, 60],
    "cpus": [1, 2, "many"],
}  # fmt: skip

CHANGES = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.integers(0, 9), max_size=4)
LOOKS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(sorted(RECORDS)), CHANGES), max_size=4),
        st.sampled_from([0.0, 0.0, 3.0, 100.0]),
        st.sampled_from(["", "", "node", "partition", "bound", "words"]),
    ),
    min_size=2,
    max_size=5,
)


def changed(record: dict[str, Any], changes: dict[str, int]) -> dict[str, Any]:
    return {**record, **{key: FIELDS[key][at % len(FIELDS[key])] for key, at in changes.items()}}


def contents(jobs: reader.Jobs) -> tuple[Any, ...]:
    """All of it, in its order."""
    return (
        list(jobs.jobs.items()), list(jobs.details.items()), list(jobs.arrays.items()), jobs.loose, jobs.kept,
        jobs.unread,
    )  # fmt: skip


@given(LOOKS)
def test_a_listing_is_read_as_if_none_had_been_read_before(looks: list[Any]) -> None:
    remembered = reader.Remembered()
    records = {number: dict(record) for number, record in RECORDS.items()}
    now, site, nodes, partitions, bounds = NOW, SITE, NODES, PARTITIONS, {}
    for changes, seconds, other in looks:
        now += seconds
        for number, fields in changes:
            records[number] = changed(records[number], fields)
        if other == "node":
            last = next(iter(nodes.nodes.values()))
            turned = msgspec.structs.replace(last, available=not last.available, gres=(("gpu", 2),))
            nodes = replace(nodes, nodes={**nodes.nodes, last.name: turned})
        elif other == "partition":
            turned = replace(partitions["batch"], open=not partitions["batch"].open)
            partitions = {**partitions, "batch": turned}
        elif other == "bound":
            bounds = {**bounds, 15: (len(bounds) + 1, None), 16: (1, now)}
        elif other == "words":
            site = replace(site, words=site.words | {"x"})
        data = json.dumps({"errors": [], "jobs": list(records.values())}).encode()
        noted: set[str] = set()
        anew: set[str] = set()
        found = reader.read_jobs(data, now, site, partitions, nodes, noted, bounds, remembered)
        expected = reader.read_jobs(data, now, site, partitions, nodes, anew, bounds)
        assert contents(found) == contents(expected)
        assert noted == anew


def test_what_did_not_change_is_the_same_object_and_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    for name in ("pending", "not_pending"):
        whole = getattr(one_record.Records, name)

        def counted(self: Any, record: Any, brief: Any, *more: Any, whole: Any = whole) -> Any:
            read.append(brief.job_id)
            return whole(self, record, brief, *more)

        monkeypatch.setattr(one_record.Records, name, counted)
    remembered = reader.Remembered()

    def look(*records: dict[str, Any]) -> reader.Jobs:
        read.clear()
        data = json.dumps({"jobs": list(records)}).encode()
        return reader.read_jobs(data, NOW, SITE, PARTITIONS, NODES, set(), None, remembered)

    first = look(RECORDS[15], RECORDS[16], RECORDS[7])
    assert read
    second = look(RECORDS[15], {**RECORDS[16], "time_limit": 77}, RECORDS[7])
    assert read == ["16"]
    assert second.jobs["15"] is first.jobs["15"] and second.details["15"] is first.details["15"]
    assert second.jobs["7"] is first.jobs["7"]
    assert second.jobs["16"].job.request.walltime == 77 * 60
    look(RECORDS[16])
    third = look(RECORDS[15], RECORDS[16])
    assert read == ["15"], "what a listing does not show is forgotten"
    assert third.jobs["15"] == first.jobs["15"]
