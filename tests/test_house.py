"""Ceilings of the code's size: what is longer or has more parts is two things, and is taken apart."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [
    path for tree in ("framework", "plugins", "adapters") for path in sorted((ROOT / tree).rglob("*.py"))
]
TREES = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]

#: Lines of a function that is taken in at once; how many may be longer (kernels, lists of facts).
LINES, LONG_FUNCTIONS = 60, 3
#: Paths through a function (McCabe's complexity) that a reader can follow, and how many may have more.
PATHS, COMPLEX_FUNCTIONS = 12, 0
#: Methods of a class, and how many may have more: the catalogue of hooks and interfaces.
METHODS, LARGE_CLASSES = 25, 5
#: Lines of a file.
LONGEST = 600


def functions() -> Iterator[tuple[int, str]]:
    for path, tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}: {node.name}"


def classes() -> Iterator[tuple[int, str]]:
    for path, tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body)
                yield methods, f"{path.relative_to(ROOT)}: {node.name}"


def test_few_functions_are_long() -> None:
    long = sorted((found for found in functions() if found[0] > LINES), reverse=True)
    assert len(long) <= LONG_FUNCTIONS, long


def complex_functions() -> list[str]:
    """As ruff counts, comments that silence it aside: ``file: message``."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--ignore-noqa", "--exit-zero"]
    command += ["--select", "C901", "--config", f"lint.mccabe.max-complexity={PATHS}"]
    command += ["--output-format", "json", "framework", "plugins", "adapters"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [f"{Path(one['filename']).relative_to(ROOT)}: {one['message']}" for one in json.loads(found)]


def test_few_functions_are_complex() -> None:
    found = complex_functions()
    assert len(found) <= COMPLEX_FUNCTIONS, found


def test_few_classes_have_many_methods() -> None:
    large = sorted((found for found in classes() if found[0] > METHODS), reverse=True)
    assert len(large) <= LARGE_CLASSES, large


def test_no_file_is_long() -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES
    }
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}
