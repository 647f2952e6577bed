"""docs/workloads.md: its commands exist, its table has each format, and its format reads."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headway.cli import cli
from headway.errors import UserError
from headway.workload import Column, read_trace
from headway.workload.format import installed, not_loadable

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


@pytest.fixture
def _broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats that do not load: of a module that is missing, of a module that fails, and no format."""
    (tmp_path / "failing.py").write_text("raise RuntimeError('made so')\n")
    (tmp_path / "nothing.py").write_text("FORMAT = 3\n")
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[headway.formats]\nbroken = no_such_module:FORMAT\nfails = failing:FORMAT\nnone = nothing:FORMAT\n"
        "plots = no_extra:FORMAT\n"
    )
    (tmp_path / "no_extra.py").write_text("raise ModuleNotFoundError('no pyarrow here', name='pyarrow')\n")
    monkeypatch.syspath_prepend(str(tmp_path))


SAID = (
    "format 'broken' (no_such_module:FORMAT) does not load: ModuleNotFoundError: No module named",
    "format 'fails' (failing:FORMAT) does not load: RuntimeError: made so",
    "format 'none' (nothing:FORMAT): expected a Format, found int",
    "format 'plots' (no_extra:FORMAT) does not load: no pyarrow here: install headway with its extra",
)


@pytest.mark.usefixtures("_broken")
def test_a_format_that_does_not_load_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    assert not {"broken", "fails", "none", "plots"} & installed().keys() and "swf" in installed()
    told = not_loadable().values()
    assert [said for said in SAID if not any(why.startswith(said) for why in told)] == []
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    assert len(read_trace(log)) == 1
    ran = CliRunner().invoke(cli, ["analyze", str(log), "--processors", "4"])
    assert ran.exit_code == 0
    told = " ".join(ran.stderr.split())
    assert [told.count(said) for said in SAID] == [1, 1, 1, 1]
    told = " ".join(CliRunner().invoke(cli, ["plugins"]).stdout.split())
    assert [told.count(said) for said in SAID] == [1, 1, 1, 1]


@pytest.mark.usefixtures("_broken")
def test_a_file_that_no_format_takes_may_be_of_one_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "log.strange").write_text("A strange log\n")
    with pytest.raises(
        UserError, match=r"expected 18 numbers.*; format 'broken' \(no_such_module:FORMAT\) does"
    ):
        read_trace(tmp_path / "log.strange")
