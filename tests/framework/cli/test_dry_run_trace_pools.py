"""``headway dry-run`` with a trace whose jobs go to several pools, and its schedule read again."""

from __future__ import annotations

import csv
from pathlib import Path

#: Number, submission, processors, queue of each job.
ROWS = [(1, 0, 2, 0), (2, 1, 8, 1), (3, 2, 2, 1), (4, 3, 8, 0), (5, 4, 1, 2)]
TRACE = "; MaxProcs: 12\n; Partition: 7 small\n" + "".join(
    f"{n} {at} -1 10 {size} -1 -1 {size} 60 -1 1 1 1 1 {queue} 7 -1 -1\n" for n, at, size, queue in ROWS
)

CONFIG = """
mode: dry-run
plugins: [easy, first-fit]
emulation:
  nodes:
    - {{count: 2, processors: 4, pool: [batch, debug]}}
    - {{count: 1, processors: 4, pool: batch, prefix: b}}
  trace_pools: {0}
"""


def pools_of(out: Path) -> dict[str, str]:
    with (out / "jobs.csv").open() as file:
        return {row["job_id"]: row["pool"] for row in csv.DictReader(file)}


def test_a_schedule_names_the_pools_and_is_read_again(headway, tmp_path):
    trace, config, again = tmp_path / "t.swf", tmp_path / "c.yaml", tmp_path / "again.yaml"
    trace.write_text(TRACE)
    config.write_text(CONFIG.format("{by: queue, of: {0: debug, 1: batch}, others: batch}"))
    again.write_text(CONFIG.format("{by: partition}"))
    assert headway("dry-run", "-c", config, "--trace", trace, "--out", tmp_path / "out").code == 0
    expected = {"1": "debug", "2": "batch", "3": "batch", "4": "debug", "5": "batch"}
    assert pools_of(tmp_path / "out") == expected
    written = (tmp_path / "out" / "schedule.swf").read_text()
    assert "; Partitions: 2\n; Partition: 1 batch\n; Partition: 2 debug\n" in written
    assert "small" not in written
    ran = headway(
        "dry-run", "-c", again, "--trace", tmp_path / "out" / "schedule.swf", "--out", tmp_path / "two"
    )
    assert (ran.code, pools_of(tmp_path / "two")) == (0, expected)


def test_a_message_names_the_configuration(headway, tmp_path):
    trace, config = tmp_path / "t.swf", tmp_path / "c.yaml"
    trace.write_text(TRACE)
    config.write_text(CONFIG.format("{by: queue, of: {0: debug, 1: batch}}"))
    ran = headway("dry-run", "-c", config, "--trace", trace)
    assert ran.code == 2 and f"{config}: emulation.trace_pools.of" in ran.err.replace("\n", "")
