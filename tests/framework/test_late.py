"""Names that a package imports when they are asked for (PEP 562)."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from headway.inputs.late import late

FRAMEWORK = Path(__file__).parents[2] / "framework" / "headway"
#: The rooms whose names are late.
ROOMS = [path for path in sorted(FRAMEWORK.rglob("__init__.py")) if "late(" in path.read_text()]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with the name ``Fraction`` of another module."""
    made = ModuleType("made_package")
    made.__dict__["__getattr__"] = late("made_package", {"fractions": "Fraction"})
    monkeypatch.setitem(sys.modules, "made_package", made)
    return made


def test_a_late_name_is_that_of_its_module_and_stays(package: ModuleType) -> None:
    from fractions import Fraction

    assert "Fraction" not in vars(package)
    assert package.Fraction is Fraction
    assert vars(package)["Fraction"] is Fraction


def test_another_name_is_none_of_the_package(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"module 'made_package' has no attribute 'Decimal'"):
        _ = package.Decimal
    assert not hasattr(package, "__path__")


def late_names(tree: ast.Module) -> dict[str, set[str]]:
    """The table of a room: the names of each module."""
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "late"
    )
    return {module: set(names.split()) for module, names in ast.literal_eval(call.args[1]).items()}


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.parent.name)
def test_a_room_tells_type_checkers_and_python_the_same(path: Path) -> None:
    name = ".".join(("headway", *path.parent.relative_to(FRAMEWORK).parts))
    tree = ast.parse(path.read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        name + module if module.startswith(".") else module: names
        for module, names in late_names(tree).items()
    }
    assert told == {
        node.module: {alias.name for alias in node.names}
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
    }
    room = import_module(name)
    assert set().union(*told.values()) <= set(room.__all__)
    assert all(hasattr(room, one) for one in room.__all__)


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.parent.name)
def test_no_late_name_is_a_module_of_its_room(path: Path) -> None:
    modules = {one.name.removesuffix(".py") for one in path.parent.iterdir()}
    assert set().union(*late_names(ast.parse(path.read_text())).values()).isdisjoint(modules)
