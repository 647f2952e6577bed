"""``headway convert``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from commandline import Headway, small_trace_lines

from headway.workload import read_cwf, read_swf

UNSET = " ".join(["-1"] * 17)
CLOUD = f"""\
; MaxProcs: 16
1 0 -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 S -1
2 5 -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1 90 S -1
1 9 {UNSET} ET 60
"""


@pytest.fixture
def cloud() -> Path:
    path = Path("log.cwf")
    path.write_text(CLOUD)
    return path


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_to_the_cloud_format_and_back_is_the_same_file(headway: Headway, ending: str) -> None:
    text = "\n".join(["; MaxProcs: 16", *small_trace_lines()[2:], ""])
    Path("log.swf").write_text(text)
    ran = headway("convert", "log.swf", f"log.cwf{ending}")
    assert (ran.code, ran.out, ran.err) == (0, f"log.cwf{ending}: 40 jobs\n", "")
    there = read_cwf(f"log.cwf{ending}", strict=True)
    assert (there.dedicated, there.commands) == (0, ())
    assert headway("convert", f"log.cwf{ending}", "again.swf").code == 0
    assert Path("again.swf").read_text() == text


def test_a_cloud_file_is_only_packed(headway: Headway, cloud: Path) -> None:
    ran = headway("convert", cloud, "log.cwf.gz")
    assert (ran.code, ran.out) == (0, "log.cwf.gz: 2 jobs, 1 requested start and 1 elastic command\n")
    assert gzip.decompress(Path("log.cwf.gz").read_bytes()).decode() == CLOUD


def test_refuses_to_lose_requested_starts_and_commands(headway: Headway, cloud: Path) -> None:
    ran = headway("convert", cloud, "log.swf")
    assert (ran.code, ran.out, ran.err) == (
        2,
        "",
        "headway: log.swf: the Standard Workload Format cannot hold 1 requested start and 1 elastic command "
        "of log.cwf; nothing was written (--drop-extensions drops these)\n",
    )
    assert not Path("log.swf").exists()


def test_drops_them_if_told_to_and_says_so(headway: Headway, cloud: Path) -> None:
    ran = headway("convert", cloud, "log.swf", "--drop-extensions")
    assert (ran.code, ran.out) == (
        0,
        "log.swf: 2 jobs; dropped: 1 requested start and 1 elastic command\n",
    )
    assert read_swf("log.swf", strict=True).records.tolist() == read_cwf(cloud).records.tolist()


def test_names_broken_lines(headway: Headway, cloud: Path) -> None:
    cloud.write_text(CLOUD.replace("ET 60", "XT 60"))
    ran = headway("convert", cloud, "out.cwf")
    assert ran.code == 0
    said = "expected S, ET, EP, RT or RP in field 20, found 'XT'"
    assert ran.err == (
        f"log.cwf: 1 line skipped: unknown request type (line 4: {said})\n(--verbose prints the lines)\n"
    )
    ran = headway("convert", cloud, "out.cwf", "-v")
    assert "log.cwf:4: expected S, ET, EP, RT or RP in field 20, found 'XT'\n" in ran.err
    ran = headway("convert", cloud, "strict.cwf", "--strict")
    assert (ran.code, ran.err) == (
        2,
        "headway: log.cwf:4: expected S, ET, EP, RT or RP in field 20, found 'XT'\n",
    )
    assert not Path("strict.cwf").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.swf", "out.cwf"], "none.swf: cannot be read: No such file or directory"),
        (["log.txt", "out.cwf"], "log.txt: cannot be read: No such file or directory"),
        (["log.cwf", "out"], "out: expected a name that ends in .cwf, .json, .swf, plain or with"),
        (["log.cwf", "none/out.cwf"], "none/out.cwf: cannot be written: No such file or directory"),
    ],
)
def test_says_what_is_wrong(headway: Headway, cloud: Path, arguments: list[str], message: str) -> None:
    ran = headway("convert", *arguments)
    assert ran.code in (1, 2)
    assert message in ran.err
