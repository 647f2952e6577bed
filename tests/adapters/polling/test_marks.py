"""What a user's comment says of the data that a job reads."""

from __future__ import annotations

from typing import Any

import pytest

from headway_adapters.polling.marks import marks

NAMED = frozenset({"data", "movable"})


@pytest.mark.parametrize(
    ("said", "attributes"),
    [
        ("data=era5", {"data": "era5"}),
        ("data=era5,grid7,movable", {"data": "era5,grid7", "movable": True}),
        ("movable,data=era5, grid7,malleable", {"movable": True, "data": "era5,grid7"}),
        ("data=era5,movable=no,more", {"data": "era5", "movable": "no", "unread": ["more"]}),
        # A word that is misspelt counts as a dataset, which no configuration has: the job is refused.
        ("data=era5,moveable", {"data": "era5,moveable"}),
        ("grid7,data=era5", {"data": "era5", "unread": ["grid7"]}),
    ],
)
def test_the_words_behind_data_are_datasets(said: str, attributes: dict[str, Any]) -> None:
    assert marks(said.split(","), NAMED) == attributes


def test_without_a_plugin_that_reads_data_nothing_is_read() -> None:
    assert marks(["data=era5", "grid7"]) == {"unread": ["data=era5", "grid7"]}
