"""Imports run one way: plugins and adapters import the framework, never back and never each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = {
    "headway": ROOT / "framework" / "headway",
    "headway_plugins": ROOT / "plugins" / "headway_plugins",
    "headway_adapters": ROOT / "adapters" / "headway_adapters",
}
FILES = [(package, path) for package, tree in TREES.items() for path in sorted(tree.rglob("*.py"))]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """``(line, module)`` of every import, wherever it stands, also under TYPE_CHECKING and by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import stays in its own package.
            if not node.level:
                yield node.lineno, node.module or ""
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in ("import_module", "__import__"):
                yield node.lineno, str(node.args[0].value)


def forbidden(package: str, source: str) -> list[tuple[int, str]]:
    """Imports of another of our packages than the one that ``package`` may import."""
    allowed = {package, "headway"}
    return [
        (line, module)
        for line, module in imported(source)
        if module.split(".")[0] in TREES and module.split(".")[0] not in allowed
    ]


@pytest.mark.parametrize(("package", "path"), FILES, ids=[str(path.relative_to(ROOT)) for _, path in FILES])
def test_a_module_imports_its_own_package_and_the_framework_only(package, path):
    assert forbidden(package, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("package", TREES)
def test_each_tree_was_found(package):
    assert (TREES[package] / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("headway", "import headway_plugins.policies.easy"),
        ("headway", "if TYPE_CHECKING:\n    from headway_adapters.emulated import Physics"),
        ("headway", "def late():\n    import headway_adapters"),
        ("headway", "importlib.import_module('headway_adapters.emulated')"),
        ("headway_plugins", "from headway_adapters.emulated import Physics"),
        ("headway_adapters", "import json, headway_plugins as p"),
    ],
)
def test_the_rule_sees_an_import_that_breaks_it(package, source):
    assert len(forbidden(package, source)) == 1


@pytest.mark.parametrize("package", TREES)
def test_the_rule_allows_the_framework_and_others_packages(package):
    assert forbidden(package, f"import numpy, headway.events\nfrom {package} import x\nfrom . import y") == []
