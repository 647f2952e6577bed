"""Import paths of 0.1 still work, and say where the module is now."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from headway.inputs.old_paths import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_has_the_names_of_the_new_one_and_warns(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is {MOVED[old]} now"):
        module = import_module(old)
    now = import_module(MOVED[old])
    assert {name for name in vars(now) if not name.startswith("_")} <= set(vars(module))
    assert now.__name__ == MOVED[old]
