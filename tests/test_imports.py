"""Imports run one way: plugins and adapters import the framework, never back and never each other; no
modules and no rooms import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
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


def test_modules_import_their_own_package_and_the_framework_only():
    assert all((tree / "__init__.py").is_file() for tree in TREES.values())
    found = {
        str(path.relative_to(ROOT)): wrong
        for package, path in FILES
        if (wrong := forbidden(package, path.read_text(encoding="utf-8")))
    }
    assert found == {}


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


# ---------------------------------------------------------------------- circles

#: Every module by its dotted name; a package by that of its ``__init__``.
MODULES = {
    ".".join(
        part for part in path.relative_to(TREES[package].parent).with_suffix("").parts if part != "__init__"
    ): path
    for package, path in FILES
}

#: Circles that still have to go. Only ever taken from, and exact: one that is gone must be taken out.
KNOWN_CIRCLES: set[frozenset[str]] = set()


def ancestors(module: str) -> list[str]:
    """``a.b.c`` -> ``a.b``, ``a``."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]


def needed(module: str, source: str, modules: Collection[str], *, package: bool) -> set[str]:
    """The modules that ``module`` imports, wherever the import stands: at the top, late, for type hints only.

    ``from a import b`` is an import of the module ``a.b`` if there is one, else of ``a``. Who imports
    ``a.b.c`` from outside of ``a`` also needs the packages ``a`` and ``a.b``, whose ``__init__`` runs first;
    a module needs its own packages only if it names them. So a package's ``__init__`` may import its modules.
    """
    inside = {*ancestors(module), module}
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                # One dot is the package that the module is in; for an __init__, that package itself.
                base = module.split(".")[: len(module.split(".")) - node.level + package]
                start = ".".join([*base, *([start] if start else [])])
            names = [
                whole if (whole := f"{start}.{alias.name}") in modules else start for alias in node.names
            ]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func
            if (getattr(function, "attr", "") or getattr(function, "id", "")) in (
                "import_module",
                "__import__",
            ):
                names = [str(node.args[0].value)]
        for name in names:
            if name in modules:
                found.add(name)
            found.update(outer for outer in ancestors(name) if outer in modules and outer not in inside)
    return found - {module}


def circles(edges: Mapping[str, Collection[str]]) -> set[frozenset[str]]:
    """Groups of modules each of which is reached from each other (strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for other in sorted(edges.get(module, ())):
            if other not in order:
                visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            group = frozenset(path[path.index(module) :])
            del path[path.index(module) :]
            if len(group) > 1:
                found.add(group)

    for module in sorted(edges):
        if module not in order:
            visit(module)
    return found


def test_no_modules_import_each_other_in_a_circle():
    edges = {
        name: needed(name, path.read_text(encoding="utf-8"), MODULES, package=path.name == "__init__.py")
        for name, path in MODULES.items()
    }
    assert circles(edges) == KNOWN_CIRCLES


# ------------------------------------------------------------------------ rooms

#: What stands beside the rooms of the framework: everybody speaks it.
AT_THE_ROOT = {"decisions", "engine", "errors", "events", "hookspecs", "version"}


def room(module: str) -> str:
    """The package of a module right below the framework's root; the module itself where it is in none."""
    return ".".join(module.split(".")[:2])


def rooms(edges: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Which rooms import which. The root package only tells the version; it is no room."""
    found: dict[str, set[str]] = {}
    for module, imports in edges.items():
        others = {room(other) for other in imports if "." in other}
        if "." in module:
            found.setdefault(room(module), set()).update(others - {room(module)})
    return found


def test_no_rooms_of_the_framework_import_each_other_in_a_circle():
    edges = {
        name: needed(name, path.read_text(encoding="utf-8"), MODULES, package=path.name == "__init__.py")
        for name, path in MODULES.items()
        if name.split(".")[0] == "headway"
    }
    assert circles(rooms(edges)) == set()


def test_only_what_everybody_speaks_stands_beside_the_rooms():
    assert {path.stem for path in TREES["headway"].glob("*.py")} == {*AT_THE_ROOT, "__init__"}


def test_the_search_sees_a_circle_of_rooms_whose_modules_have_none():
    edges = {"h.a.x": {"h.b.x"}, "h.b.y": {"h.a.y"}, "h.a.y": set(), "h.b.x": set(), "h": {"h.a.x"}}
    assert circles(edges) == set()
    assert circles(rooms(edges)) == {frozenset({"h.a", "h.b"})}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a.x": "import a.y", "a.y": "from a import x"}, {"a.x", "a.y"}),
        ({"a.x": "from a.y import f", "a.y": "def late():\n    import a.x"}, {"a.x", "a.y"}),
        ({"a.x": "from . import y", "a.y": "if TYPE_CHECKING:\n    from .x import f"}, {"a.x", "a.y"}),
        ({"a.x": "from a.y import f", "a.y": "importlib.import_module('a.x')"}, {"a.x", "a.y"}),
        ({"a.x": "import a.y", "a.y": "import a.z", "a.z": "import a.x"}, {"a.x", "a.y", "a.z"}),
        # A package that names its modules is none, until one of them names the package.
        ({"a": "from a.x import f", "a.x": "import a.y", "a.y": ""}, set()),
        ({"a": "from a.x import f", "a.x": "from a import f"}, {"a", "a.x"}),
        # Who needs one module of a package needs what the package itself imports.
        ({"a.x": "import b.y", "b": "import b.z", "b.y": "", "b.z": "import a.x"}, {"a.x", "b", "b.z"}),
        ({"a.x": "import a.y, a.z", "a.y": "import a.z", "a.z": "import json"}, set()),
    ],
)  # fmt: skip
def test_the_search_sees_a_circle(sources, expected):
    edges = {
        name: needed(name, source, sources, package=name in ("a", "b")) for name, source in sources.items()
    }
    assert circles(edges) == ({frozenset(expected)} if expected else set())
