"""Writing traces, and reading what was written."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Failure
from headway.workload import Column, read_swf, write_swf
from headway.workload.swf import WHOLE

RECORD = [1, 10, 5, 100, 4, 99.5, -1, 4, 200, -1, 1, 7, 8, 9, 2, -1, -1, -1]

whole_numbers = st.integers(-1, 10**15).map(float)
any_numbers = st.floats(allow_nan=False, allow_infinity=False)
records = st.lists(
    st.tuples(
        *(
            # Parts of jobs (2, 3, 4) are not read as jobs.
            st.sampled_from([-1.0, 0.0, 1.0, 5.0])
            if column is Column.STATUS
            else whole_numbers
            if column in WHOLE
            else any_numbers
            for column in Column
        )
    ),
    min_size=1,
    max_size=8,
).map(lambda rows: sorted(rows, key=lambda row: row[Column.SUBMIT]))
headers = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")).map(lambda text: f";{text}"),
    max_size=4,
)


@given(header=headers, rows=records, packed=st.booleans())
def test_reading_what_was_written_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, header: list[str], rows: list[tuple[float, ...]], packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / ("round_trip.swf.gz" if packed else "round_trip.swf")
    write_swf(path, header, rows)
    trace = read_swf(path)
    assert trace.records.tolist() == [list(row) for row in rows]
    assert trace.header == header


def test_whole_numbers_have_no_decimal_point(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, ["; MaxProcs: 4", "no semicolon"], [RECORD])
    assert path.read_text() == (
        "; MaxProcs: 4\n; no semicolon\n1 10 5 100 4 99.5 -1 4 200 -1 1 7 8 9 2 -1 -1 -1\n"
    )


def test_a_name_in_gz_is_compressed_and_repeatable(tmp_path: Path) -> None:
    first, second = tmp_path / "a.swf.gz", tmp_path / "b.swf.gz"
    write_swf(first, [], [RECORD])
    write_swf(second, [], [RECORD])
    assert gzip.decompress(first.read_bytes()).startswith(b"1 10 5 ")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == bytes(4), "no time of writing"


def test_numbers_beyond_exact_whole_numbers_have_no_made_up_digits(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, [], [[*RECORD[:17], 1e300]])
    assert path.read_text().endswith(" 1e+300\n")


def test_many_records_keep_their_order(tmp_path: Path) -> None:
    rows = np.tile(np.array(RECORD), (20_000, 1))
    rows[:, Column.NUMBER] = np.arange(1, len(rows) + 1)
    write_swf(tmp_path / "log.swf", [], rows)
    assert np.array_equal(read_swf(tmp_path / "log.swf").records, rows)


@pytest.mark.parametrize("rows", [[RECORD[:17]], [[*RECORD[:17], float("nan")]], RECORD])
def test_what_is_no_record_is_refused(tmp_path: Path, rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="expected n x 18 finite numbers"):
        write_swf(tmp_path / "log.swf", [], rows)
    assert list(tmp_path.iterdir()) == []


def test_a_header_line_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line feed"):
        write_swf(tmp_path / "log.swf", ["; a\n1 2 3"], [RECORD])


def test_a_failure_names_the_file_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Failure, match=r"none/log\.swf: cannot be written: No such file or directory"):
        write_swf(tmp_path / "none" / "log.swf", [], [RECORD])

    path = tmp_path / "log.swf"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Failure, match=r"log\.swf: cannot be written: No space left on device"):
        write_swf(path, [], [RECORD])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_trace_has_only_its_header(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, ["; nothing"], np.empty((0, 18)))
    assert path.read_text() == "; nothing\n"
