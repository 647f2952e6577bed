"""How PBS writes: folded lines, durations, sizes."""

from __future__ import annotations

import json

import pytest
from emulated_commands import recorded
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.commands import pbs_text
from headway_adapters.commands.cjson import as_json


@pytest.mark.parametrize("name", ["qstat_server_json", "qstat_queue_json", "pbsnodes_json"])
def test_the_recorded_json_is_written_byte_for_byte(name):
    text = recorded("pbs", name)["stdout"]
    assert as_json(json.loads(text)) + "\n" == text


def test_the_recorded_listing_is_folded_line_by_line():
    records = json.loads(recorded("pbs", "qstat_full_json")["stdout"])["Jobs"]
    text = recorded("pbs", "qstat_full_text")["stdout"]
    for job_id, record in records.items():
        start = text.index(f"Job Id: {job_id}\n")
        block = text[start : text.find("\n\n", start) + 1]
        written = f"Job Id: {job_id}\n" + pbs_text.attributes(record)
        changing = ("resources_used", "queue_rank", "    mtime")

        def kept(lines):
            return [line for line in lines.splitlines() if not line.strip().startswith(changing)]  # noqa: B023

        assert kept(written) == kept(block)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1:30", 90), ("00:01:30", 90), ("100:00:00", 360000)]
)
def test_durations(text, seconds):
    assert pbs_text.seconds(text) == seconds


@given(st.integers(0, 10**9))
def test_a_duration_is_read_as_it_was_written(seconds):
    assert pbs_text.seconds(pbs_text.duration(seconds)) == seconds


@given(st.integers(0, 1 << 60))
def test_a_size_is_read_as_it_was_written(amount):
    assert pbs_text.size(pbs_text.size_text(amount)) == amount


@pytest.mark.parametrize(
    ("text", "amount"), [("4gb", 4 << 30), ("512mb", 512 << 20), ("10", 10), ("2kw", 2 << 13)]
)
def test_sizes(text, amount):
    assert pbs_text.size(text) == amount
