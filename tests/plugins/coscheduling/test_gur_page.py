"""The examples of docs/papers/gur.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from zoneinfo import ZoneInfo

from gur_sites import SEVEN

from headway_plugins.coscheduling.metajob_ini import read
from headway_plugins.coscheduling.options import SearchOptions

PAGE = (Path(__file__).parents[3] / "docs" / "papers" / "gur.md").read_text("utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_file_loads():
    found = read(block("ini"), name="m", zone=ZoneInfo("UTC"))
    assert (found.total, found.earliest, list(found.machines)) == (12, SEVEN, ["datastar655", "purduesp"])


def test_the_search_runs(capsys):
    exec(block("python"), {})
    assert capsys.readouterr().out == "B 7 50\nA 1 50\n"


def test_the_page_has_every_option_with_its_default():
    for name, field in SearchOptions.model_fields.items():
        assert f"`{name}`" in PAGE
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert re.search(rf"`{name}` \({field.default:g}\b", PAGE), name
