"""The notebooks of the documentation run, cell by cell, and what they say of their results holds."""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import headway
from headway.hookspecs import HookSpecs

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def sources(path: Path, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == kind]


def run(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a notebook after its last cell: those of a module, so that other processes know its
    classes."""
    module = ModuleType(f"notebook_{path.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    for at, source in enumerate(sources(path, "code")):
        cell = ast.parse(source)
        shown = cell.body.pop() if isinstance(cell.body[-1], ast.Expr) else None
        exec(compile(cell, f"{path.name}, cell {at}", "exec"), names)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), f"{path.name}, cell {at}", "eval"), names)
            if value is not None and hasattr(value, "_repr_html_"):
                assert "<table>" in value._repr_html_()
    return names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_one_of_the_format_and_has_no_outputs(path: Path) -> None:
    found = read(path)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in found["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in found["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbformat.validate(nbformat.from_dict(found))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_link_of_a_notebook_leads_to_a_file(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)", "".join(sources(path, "markdown")))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_notebook_compares_a_policy_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = NOTEBOOKS
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        names = run(path, monkeypatch)
    assert any("broken or not answered" in str(one.message) for one in said)
    policy = next(text for text in sources(path, "code") if "class ShortestBackfill" in text)
    assert len(policy.splitlines()) <= 40
    assert {"schedule"} <= set(vars(HookSpecs))
    found = names["found"]
    assert isinstance(found, headway.Comparison) and found.rows.shape == (30,)
    assert names["ours"].metrics["counts"]["finished"] == len(names["ours"].jobs)
    # What the text says of the numbers: the intervals overlap, and our policy has no verdict.
    means = found.means("mean wait")
    for first, second in ((0, 1), (3, 4)):
        apart = abs(means["mean"][first] - means["mean"][second])
        assert apart < means["half"][first] + means["half"][second]
    says = {(one["variant"], one["metric"], one["says"]) for one in names["against"]}
    assert {word for variant, _, word in says if variant == "shortest-backfill"} == {"undecided"}
    assert ("fcfs", "mean wait", "more") in says
    shown = capsys.readouterr().out
    assert "The first difference is at" in shown and shown.rstrip().endswith("\n1")
