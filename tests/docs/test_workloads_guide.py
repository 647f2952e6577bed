"""docs/workloads.md: its commands exist, its table has each format, and its format reads."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from headway.cli import cli
from headway.errors import UserError
from headway.workload import Column, read_trace
from headway.workload.format import installed

PAGE = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")
LOG = """job,user,submitted,started,ended,cores
2,11,1700000060,1700000070,1700000100,4
1,12,1700000000,1700000000,1700000050,8
x,12,1700000000,1700000000,1700000050,8
"""


def block(kind: str, begin: str = "") -> str:
    return re.findall(rf"^```{kind}\n({begin}.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def test_the_commands_exist() -> None:
    for line in block("sh").splitlines():
        _, name, *words = shlex.split(line, comments=True)
        context = click.Context(cli)
        command = cli.get_command(context, name)
        assert command is not None
        command.make_context(name, list(words), parent=context)


def test_the_table_has_each_format() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| ")][1:]
    endings = {cell.strip(" `") for cell in (row[2] for row in rows) if cell.strip()}
    formats = installed()
    assert endings == {end for one in formats.values() for end in one.endings}
    assert len(rows) == len(formats)
    written = {row[2].strip(" `") for row in rows if row[4].strip()}
    assert written == {end for one in formats.values() if one.write for end in one.endings}


@pytest.fixture
def _spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's format, installed."""
    (tmp_path / "spool.py").write_text(block("python", "# spool.py"))
    about = tmp_path / "spool-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: spool\nVersion: 1\n")
    points = (
        block("toml").replace("project.entry-points.", "").replace('"headway.formats"', "headway.formats")
    )
    (about / "entry_points.txt").write_text(points.replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_spool")
@pytest.mark.parametrize("name", ["log.spool", "log.csv"])
def test_the_format_reads(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LOG)
    trace = read_trace(tmp_path / name)
    seen = [Column.NUMBER, Column.WAIT, Column.RUNTIME, Column.REQUESTED]
    assert trace.records[:, seen].tolist() == [[1, 0, 50, 8], [2, 10, 30, 4]]
    assert trace.line_numbers.tolist() == [3, 2]
    assert [issue.line_number for issue in trace.issues] == [4]
    with pytest.raises(UserError, match=r"line 4: expected six numbers, found 'x,12,"):
        read_trace(tmp_path / name, strict=True)


def test_a_format_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[headway.formats]\nbroken = no_such_module:FORMAT\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        UserError, match=r"format 'broken' \(no_such_module:FORMAT\) does not load: No module"
    ):
        installed()
