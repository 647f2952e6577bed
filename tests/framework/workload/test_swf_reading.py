"""Reading traces, clean and dirty."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from headway.errors import HeadwayError, UserError
from headway.workload import Column, Issue, Trace, read_swf, swf
from headway.workload import trace as kinds

HEADER = """\
; Version: 2.2
; Computer: IBM SP2
; MaxNodes: 50
; MaxProcs: 100
; UnixStartTime: 843480031
; Queue:  1  short
; Queue:  2  long
; Information: http://www.example.org/
;              http://www.example.org/more/
;
"""
JOB_1 = "1 10 5 100 4 -1 -1 4 200 -1 1 7 8 9 2 -1 -1 -1\n"
JOB_2 = "2 20 5 100 4 99.5 -1 4 200 -1 0 7 8 9 2 -1 -1 -1\n"


def read(text: str | bytes, **options: bool) -> Trace:
    data = text.encode() if isinstance(text, str) else text
    return read_swf(io.BytesIO(data), **options)


def kinds_by_line(trace: Trace) -> list[tuple[int, str]]:
    return [(issue.line_number, issue.kind) for issue in trace.issues]


class TestACleanTrace:
    def test_has_the_eighteen_fields_of_each_job(self) -> None:
        trace = read(HEADER + JOB_1 + JOB_2)
        assert trace.records.shape == (2, 18)
        assert trace.records[0].tolist() == [1, 10, 5, 100, 4, -1, -1, 4, 200, -1, 1, 7, 8, 9, 2, -1, -1, -1]
        assert trace.records[1, Column.CPU_TIME] == 99.5
        assert trace.issues == []
        assert trace.line_numbers.tolist() == [11, 12]

    def test_keeps_its_header_as_it_stands(self) -> None:
        assert read(HEADER + JOB_1).header == HEADER.splitlines()

    def test_has_the_header_fields_with_repeated_keys_joined(self) -> None:
        assert read(HEADER + JOB_1).fields == {
            "Version": "2.2",
            "Computer": "IBM SP2",
            "MaxNodes": "50",
            "MaxProcs": "100",
            "UnixStartTime": "843480031",
            "Queue": "1  short\n2  long",
            "Information": "http://www.example.org/",
        }

    def test_tells_the_epoch_of_its_time_zero(self) -> None:
        assert read(HEADER + JOB_1).epoch == 843480031
        assert read(JOB_1).epoch is None

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("; MaxNodes: 50\n; MaxProcs: 100\n", 100),
            ("; MaxNodes: 50\n", 50),
            ("; MaxNodes: 50\n; MaxProcs: -1\n", 50),
            ("; MaxNodes: 50\n; MaxProcs: unknown\n", 50),
            ("; MaxProcs: 1024 (see notes)\n", 1024),
            ("; Computer: none\n", None),
        ],
    )
    def test_tells_the_machine_size(self, header: str, expected: int | None) -> None:
        assert read(header + JOB_1).max_processors == expected

    def test_may_have_windows_line_ends_tabs_and_a_byte_order_mark(self) -> None:
        text = "\ufeff" + (HEADER + JOB_1 + JOB_2).replace("\n", "\r\n").replace("100 4", "100\t4")
        trace = read(text)
        assert trace.header == HEADER.splitlines()
        assert trace.max_processors == 100
        assert len(trace) == 2
        assert trace.issues == []

    def test_may_end_without_a_line_end(self) -> None:
        assert len(read(JOB_1 + JOB_2.rstrip("\n"))) == 2

    def test_may_have_numbers_with_exponents_and_signs(self) -> None:
        trace = read(JOB_1.replace("-1 -1 4", "+1.5e2 .5 4").replace("-1 1 7", "2. 1 7"))
        assert trace.records[0, [5, 6, 9]].tolist() == [150, 0.5, 2]
        assert trace.issues == []

    def test_may_have_fractions_of_seconds(self) -> None:
        trace = read(JOB_1.replace("1 10 5 100 4", "1 10.25 5.5 100.125 4"))
        assert trace.records[0, 1:4].tolist() == [10.25, 5.5, 100.125]
        assert trace.issues == []


class TestADirtyLine:
    def test_that_is_blank_is_skipped(self) -> None:
        trace = read(JOB_1 + "\n   \n" + JOB_2)
        assert len(trace) == 2
        assert kinds_by_line(trace) == [(2, kinds.BLANK), (3, kinds.BLANK)]

    def test_that_is_short_is_padded_when_it_has_what_an_emulation_needs(self) -> None:
        trace = read("3 30 5 100 4 -1 -1 4 200\n" + JOB_1)
        assert trace.records[1].tolist() == [3, 30, 5, 100, 4, -1, -1, 4, 200] + [-1] * 9
        assert kinds_by_line(trace)[0] == (1, kinds.PADDED)

    def test_that_is_too_short_is_skipped(self) -> None:
        trace = read("3 30 5 100 4 -1 -1 4\n" + JOB_1)
        assert len(trace) == 1
        assert trace.issues == [
            Issue(1, kinds.TOO_FEW, "expected 18 numbers, found 8 in '3 30 5 100 4 -1 -1 4'")
        ]
        assert trace.issues[0].skipped

    def test_that_the_end_of_the_file_cuts_is_skipped(self) -> None:
        trace = read(JOB_1 + "3 30 5 100 4 -1 -1 4 200 -1 1")
        assert len(trace) == 1
        assert kinds_by_line(trace) == [(2, kinds.TOO_FEW)]
        assert "end of the file" in trace.issues[0].text

    def test_that_is_long_is_cut(self) -> None:
        trace = read(JOB_1.replace("\n", " 77 78\n"))
        assert trace.records[0].tolist() == [float(token) for token in JOB_1.split()]
        assert trace.issues == [Issue(1, kinds.CUT, "expected 18 numbers, found 20")]

    @pytest.mark.parametrize(
        "word", ["n/a", "1-2", "--1", "1.2.3", "0x10", "1_0", "nan", "inf", "9" * 400, "1e999", "-"]
    )
    def test_with_a_word_in_a_field_that_is_not_needed_has_minus_one_there(self, word: str) -> None:
        trace = read(JOB_1.replace(" 7 8 9 ", f" 7 {word} 9 ") + JOB_2)
        assert trace.records[0, 11:14].tolist() == [7, -1, 9]
        assert kinds_by_line(trace) == [(1, kinds.UNKNOWN)]
        assert "field 13" in trace.issues[0].text
        assert not trace.issues[0].skipped

    @pytest.mark.parametrize("field", [1, 2, 4, 5, 8, 9])
    def test_with_a_word_in_a_needed_field_is_skipped(self, field: int) -> None:
        tokens = JOB_1.split()
        tokens[field - 1] = "x7"
        trace = read(" ".join(tokens) + "\n" + JOB_2)
        assert trace.records[:, 0].tolist() == [2]
        text = f"expected a number in field {field}, found 'x7'"
        assert trace.issues == [Issue(1, kinds.NO_NUMBER, text)]

    def test_with_a_fraction_in_a_count_loses_it(self) -> None:
        trace = read(JOB_1.replace("100 4 -1 -1 4", "100 4.0 -1 -1 4.5"))
        assert trace.records[0, [4, 7]].tolist() == [4, 4]
        expected = "expected a whole number in field 8, found 4.5"
        assert trace.issues == [Issue(1, kinds.FRACTION, expected)]

    def test_with_odd_bytes_is_shown_printable(self) -> None:
        trace = read(b"\x00\xff\x1b[31m\n" + JOB_1.encode())
        assert trace.issues[0].text.isprintable()

    def test_does_not_touch_its_neighbours(self) -> None:
        job_3 = JOB_1.replace("1 10", "3 30", 1)
        trace = read(HEADER + JOB_1 + "what is this\n" + JOB_2 + "; a comment\n" + job_3)
        assert trace.records[:, 0].tolist() == [1, 2, 3]
        assert trace.line_numbers.tolist() == [11, 13, 15]
        assert trace.records[1, Column.CPU_TIME] == 99.5


class TestComments:
    def test_among_the_jobs_are_kept_but_say_nothing_about_the_machine(self) -> None:
        trace = read("; MaxProcs: 100\n" + JOB_1 + "; MaxProcs: 7\n" + JOB_2)
        assert trace.header == ["; MaxProcs: 100", "; MaxProcs: 7"]
        assert trace.max_processors == 100
        assert kinds_by_line(trace) == [(3, kinds.LATE_COMMENT)]

    def test_after_a_mended_first_job_are_not_the_header(self) -> None:
        trace = read("1 10 5 100 4 -1 -1 4 200\n; MaxProcs: 7\n")
        assert trace.fields == {}

    def test_that_are_not_utf8_are_read_as_latin1(self) -> None:
        trace = read("; Acknowledge: Åke\n".encode("latin-1") + JOB_1.encode())
        assert trace.fields == {"Acknowledge": "Åke"}
        found = "expected UTF-8, found byte 0xc5 at column 16"
        assert trace.issues == [Issue(1, kinds.ENCODING, found)]


class TestTheOrderOfJobs:
    def test_is_by_submit_time_and_by_line_among_equals(self) -> None:
        jobs = [JOB_1.replace("1 10", start, 1) for start in ("1 20", "2 10", "3 20", "4 10")]
        trace = read("".join(jobs))
        assert trace.records[:, 0].tolist() == [2, 4, 1, 3]
        assert trace.line_numbers.tolist() == [2, 4, 1, 3]
        assert kinds_by_line(trace) == [(2, kinds.OUT_OF_ORDER), (4, kinds.OUT_OF_ORDER)]

    def test_duplicate_numbers_are_kept_and_counted(self) -> None:
        trace = read(JOB_1 + JOB_1 + JOB_2 + JOB_1)
        assert len(trace) == 4
        duplicates = [(2, kinds.DUPLICATE), (4, kinds.OUT_OF_ORDER), (4, kinds.DUPLICATE)]
        assert kinds_by_line(trace) == duplicates

    def test_negative_submit_times_are_kept_and_counted(self) -> None:
        trace = read(JOB_1.replace("1 10", "1 -1", 1) + JOB_2)
        assert trace.records[:, Column.SUBMIT].tolist() == [-1, 20]
        assert kinds_by_line(trace) == [(1, kinds.NEGATIVE_SUBMIT)]


class TestTheSummary:
    trace_text = JOB_1 + "\n\n" + "1 2 3\n" + JOB_2

    def test_counts_issues_by_kind(self) -> None:
        assert read(self.trace_text).summary() == {kinds.BLANK: 2, kinds.TOO_FEW: 1}

    def test_says_it_in_lines(self) -> None:
        assert read(self.trace_text).describe_issues() == [
            "trace: 2 lines skipped: blank line",
            "trace: 1 line skipped: too few fields (line 4: expected 18 numbers, found 3 in '1 2 3')",
        ]

    def test_gives_line_numbers_when_verbose(self) -> None:
        assert read(self.trace_text).describe_issues(verbose=True) == [
            "trace: 2 lines skipped: blank line",
            "trace:2: expected 18 numbers, found a blank line",
            "trace:3: expected 18 numbers, found a blank line",
            "trace: 1 line skipped: too few fields",
            "trace:4: expected 18 numbers, found 3 in '1 2 3'",
        ]

    def test_of_a_clean_trace_says_nothing(self) -> None:
        assert read(JOB_1).describe_issues(verbose=True) == []


class TestStrictReading:
    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("1 2 3\n", "expected 18 numbers, found 3 in '1 2 3'"),
            ("3 30 5 100 4 -1 -1 4 200\n", "expected 18 numbers, found 9"),
            (JOB_1.replace("\n", " 5\n"), "expected 18 numbers, found 19"),
            (JOB_1.replace("1 10", "x 10", 1), "expected a number in field 1, found 'x'"),
            (JOB_1.replace(" 7 8", " u7 8"), "expected a number in field 12, found 'u7'"),
            (JOB_1.replace(" 7 8", " 7.5 8"), "expected a whole number in field 12, found 7.5"),
        ],
    )
    def test_stops_at_the_first_broken_line(self, tmp_path: Path, line: str, found: str) -> None:
        path = tmp_path / "log.swf"
        path.write_text(HEADER + JOB_1 + line + "garbage\n")
        with pytest.raises(UserError) as error:
            read_swf(path, strict=True)
        assert str(error.value) == f"{path}:12: {found}"

    def test_takes_what_is_only_unusual(self) -> None:
        trace = read(JOB_2 + "\n; comment\n" + JOB_1 + JOB_1, strict=True)
        assert len(trace) == 3


class TestFiles:
    def test_may_be_gzipped_whatever_their_name(self, tmp_path: Path) -> None:
        for name in ("log.swf.gz", "log.swf"):
            path = tmp_path / name
            path.write_bytes(gzip.compress((HEADER + JOB_1).encode()))
            assert len(read_swf(path)) == 1
            assert read_swf(str(path)).path == str(path)

    def test_larger_than_a_block_are_read_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = [JOB_1.replace("1 10", f"{number} {number}", 1) for number in range(1, 400)]
        jobs[200] = "broken\n"
        text = HEADER + "".join(jobs)
        whole = read(text)
        for block in (1, 7, 100, 1000):
            monkeypatch.setattr(swf, "BLOCK", block)
            trace = read(text)
            assert np.array_equal(trace.records, whole.records)
            assert np.array_equal(trace.line_numbers, whole.line_numbers)
            assert (trace.header, trace.fields, trace.issues) == (whole.header, whole.fields, whole.issues)

    def test_that_are_missing_are_the_users_error(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"nothing\.swf: cannot be read: No such file"):
            read_swf(tmp_path / "nothing.swf")

    def test_that_are_directories_are_the_users_error(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"cannot be read: Is a directory"):
            read_swf(tmp_path)

    def test_named_gz_that_are_not(self, tmp_path: Path) -> None:
        path = tmp_path / "log.swf.gz"
        path.write_text(HEADER + JOB_1)
        with pytest.raises(UserError, match=r"log\.swf\.gz: expected a gzip file"):
            read_swf(path)

    @pytest.mark.parametrize("text", ["", HEADER, "\n\n"])
    def test_without_a_job_line(self, text: str) -> None:
        with pytest.raises(UserError, match="trace: expected job lines of 18 numbers, found none"):
            read(text)

    def test_in_which_no_line_is_a_job(self) -> None:
        with pytest.raises(UserError, match="found line 2: expected 18 numbers, found 3 in 'not a trace'"):
            read("; header\nnot a trace\n")

    def test_gzipped_and_cut_off_are_not_used(self, tmp_path: Path) -> None:
        path = tmp_path / "log.swf.gz"
        packed = gzip.compress((HEADER + JOB_1 * 5000).encode())
        path.write_bytes(packed[: len(packed) * 2 // 3])
        with pytest.raises(HeadwayError, match=r"log\.swf\.gz: .* cut off"):
            read_swf(path)

    @pytest.mark.parametrize("where", [15, -6])
    def test_gzipped_and_damaged_are_not_used(self, tmp_path: Path, where: int) -> None:
        path = tmp_path / "log.swf.gz"
        packed = bytearray(gzip.compress((HEADER + JOB_1 * 50).encode()))
        packed[where] ^= 0xFF
        path.write_bytes(packed)
        with pytest.raises(UserError, match=r"log\.swf\.gz: the compressed file is damaged"):
            read_swf(path)

    def test_without_line_ends_are_not_read_for_ever(self) -> None:
        with pytest.raises(UserError, match=r"zero:1: .* bytes without a line end"):
            read_swf("/dev/zero")


@pytest.mark.traces
def test_a_real_trace_is_counted_as_by_hand(trace_dir: Path) -> None:
    """KTH-SP2: every line that is no comment is a job; none is dirty."""
    path = trace_dir / "KTH-SP2-1996-2.1-cln.swf.gz"
    with gzip.open(path, "rt", encoding="latin-1") as file:
        lines = [line for line in file if line.strip()]
    comments = [line.rstrip("\n") for line in lines if line.startswith(";")]
    jobs = [[float(token) for token in line.split()] for line in lines if not line.startswith(";")]
    trace = read_swf(path)
    assert trace.header == comments
    assert trace.records.tolist() == sorted(jobs, key=lambda job: job[1])
    assert trace.issues == []
    assert trace.max_processors == 100
