"""The operators' chapter on moving a policy over, followed as it is written, with a site's example files."""

from __future__ import annotations

import re
import shlex
import shutil
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner
from guide import PAGES

from headway.cli import cli

PAGE = PAGES["moving.md"]
FILES = Path(__file__).parents[1] / "adapters" / "site_import" / "files"
#: The commands of the blocks, in order.
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the site's files and a log, in which one is."""
    monkeypatch.chdir(tmp_path)
    for file in FILES.iterdir():
        shutil.copy(file, tmp_path)
    rows = (f"{n} {n} -1 50 4 -1 -1 4 60 -1 1 {n % 3 + 1} {n % 2 + 1} 1 1 1 -1 -1" for n in range(1, 31))
    (tmp_path / "last-year.swf").write_text("; MaxProcs: 16\n" + "\n".join(rows) + "\n")
    return tmp_path


def run(line: str) -> str:
    ran = CliRunner(env={"COLUMNS": "200"}).invoke(cli, shlex.split(line)[1:])
    assert ran.exit_code == 0, f"{line}: {ran.output} {ran.exception}"
    return ran.output


@pytest.mark.parametrize("system", ["slurm", "pbs", "maui"])
def test_the_steps_lead_from_a_sites_files_to_its_shares(system: str, there: Path) -> None:
    (imports,) = (line for line in COMMANDS if line.startswith(f"headway import {system} "))
    listed = run(imports)
    if system == "slurm":
        for line in re.findall(r"^slurm\.\w+:\d+: .*$", PAGE, re.MULTILINE):
            assert line in listed
    # Those of the third step, but for the one that asks the batch system.
    (dry,) = (line for line in COMMANDS if line.startswith("headway dry-run"))
    (shares,) = (line for line in COMMANDS if line.startswith("headway shares"))
    run(dry)
    assert "Account" in run(shares)


@pytest.mark.parametrize(
    ("system", "file", "text", "said"),
    [
        (
            "pbs", "qmgr.txt", "create queue workq\ncreate queue p_day\n",
            "pool-hours: open: 'p_day': the machine of this dry run has no such pool, so its hours are "
            "ignored",
        ),
        (
            "maui", "maui.cfg",
            "CLASSCFG[batch] PRIORITY=1\nSRCFG[a] HOSTLIST=c1,c2 STARTTIME=8:00:00 ENDTIME=9:00:00\n",
            "calendar: windows: a: the window is about no pool or node of this dry run, so nothing is kept "
            "free",
        ),
    ],
)  # fmt: skip
def test_a_dry_run_leaves_out_what_its_machine_lacks_of_the_sites(
    system: str, file: str, text: str, said: str, there: Path
) -> None:
    (there / file).write_text(text)
    (imports,) = (line for line in COMMANDS if line.startswith(f"headway import {system} "))
    run(imports)
    (dry,) = (line for line in COMMANDS if line.startswith("headway dry-run"))
    assert said in " ".join(run(dry).split())


def test_the_guide_names_files_that_are_made_before_they_are_read() -> None:
    made = " ".join(line for line in COMMANDS if line.startswith(("cp ", "sacctmgr ", "qmgr ")))
    for line in COMMANDS:
        if line.startswith(("headway import slurm", "headway import pbs")):
            names = [*takewhile(lambda word: not word.startswith("--"), shlex.split(line)[3:])]
            assert names and all(name in made for name in names)
