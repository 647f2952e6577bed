"""One value that a plugin refuses costs that value, not the plugin."""

from __future__ import annotations

import pytest

from headway.plugins import Catalogue
from headway_adapters.site_import.refused import accepted

TREE = {"chem": {"shares": 2, "users": {"ann": {"shares": 1}}}}


@pytest.mark.parametrize(
    ("name", "options", "kept", "places"),
    [
        ("limits", {"of": {"user": {"ann": {"jobs": -1, "processors": 4}}}},
         {"of": {"user": {"ann": {"processors": 4}}}}, ["of.user.ann.jobs"]),
        ("limits", {"of": {"user": {"ann": {"largest": {"walltime": "soon", "nodes": 2}}}}, "accounts": TREE},
         {"of": {"user": {"ann": {"largest": {"nodes": 2}}}}, "accounts": TREE},
         ["of.user.ann.largest.walltime"]),
        ("limits", {"of": {"user": {"ann": {"jobs": -1}, "bob": {"jobs": 1.5}}}},
         {"of": {"user": {"ann": {}, "bob": {}}}}, ["of.user.ann.jobs", "of.user.bob.jobs"]),
        ("multifactor", {"weights": {"age": 1}, "max_age": "soon"}, {"weights": {"age": 1}}, ["max_age"]),
        ("easy", {"bookings": 2}, {"bookings": 2}, []),
        ("easy", {"bookings": 2, "new": 3}, {"bookings": 2}, ["new"]),
    ],
)  # fmt: skip
def test_what_is_refused_is_left_out_by_itself(
    name: str, options: dict, kept: dict, places: list[str]
) -> None:
    found, said = accepted(name, options, Catalogue())
    assert found == kept
    assert [line.partition(" is refused by the plugin ")[0] for line in said] == places
    assert all(f"the plugin {name} and left out: {name}: " in line for line in said)


def test_a_plugin_without_what_it_needs_is_left_out() -> None:
    found, said = accepted("limits", {"of": {"usr": {"ann": {"jobs": 1}}}}, Catalogue())
    assert found is None
    assert "the plugin limits refuses the settings that were read, so they are left out: " in said[-1]
