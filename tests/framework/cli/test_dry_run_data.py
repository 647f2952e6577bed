"""`headway dry-run --data`: a file says which files a trace's jobs read."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Headway

from headway.model.sites import DATA, datasets_of
from headway.workload.data_use import read_data_use

TRACE = """; MaxProcs: 8
1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1
2 1 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1
"""
PLUGIN = '''"""Refuses jobs that read files, and names them."""

from headway.hookspecs import Plugin, hookimpl
from headway.model.sites import datasets_of


class Readers(Plugin):
    @hookimpl
    def admit_job(self, job):
        return ", ".join(datasets_of(job.description.attributes)) or None


PLUGINS = {"readers": Readers}
'''


def written(tmp_path: Path, uses: str) -> list[Path]:
    files = {"trace.swf": TRACE, "use.csv": uses, "readers.py": PLUGIN}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in files]


def test_jobs_read_what_the_file_says(headway: Headway, tmp_path: Path) -> None:
    trace, use, plugin = written(tmp_path, "job_id,datasets\n2,run-7 run-9\n")
    arguments = ("--trace", trace, "--plugin", plugin, "--with", "readers", "--verbose")
    ran = headway("dry-run", *arguments, "--data", use, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    text = (tmp_path / "out" / "jobs.csv").read_text() + ran.out + ran.err
    assert "run-7, run-9" in text and "2 jobs (1 completed" in ran.out
    assert "2 jobs (2 completed" in headway("dry-run", *arguments).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job_id,datasets\n3,a\n3,b\n", "line 3: job '3' is named twice"),
        (
            'job_id,datasets\n3,"a,b"\n',
            "line 2: datasets: expected names with spaces between them, found 'a,b'",
        ),
        ("job_id,files\n3,a\n", "there is no column 'files'"),
    ],
)
def test_a_wrong_line_is_named(headway: Headway, tmp_path: Path, text: str, said: str) -> None:
    trace, use, _ = written(tmp_path, text)
    ran = headway("dry-run", "--trace", trace, "--data", use)
    assert ran.code in (1, 2) and said in ran.err


def test_a_job_without_files_is_named_as_well(tmp_path: Path) -> None:
    use = written(tmp_path, "datasets,job_id\n,1\na  b,2\n")[1]
    assert read_data_use(use) == {"1": [], "2": ["a", "b"]}


@pytest.mark.parametrize(
    ("said", "names"), [(["a", "b", "a"], ("a", "b")), ("a, b,,a", ("a", "b")), ([], ()), ("", ())]
)
def test_the_attribute_is_a_list_or_text(said: object, names: tuple[str, ...]) -> None:
    assert datasets_of({DATA: said}) == names
    assert datasets_of(None) == ()
