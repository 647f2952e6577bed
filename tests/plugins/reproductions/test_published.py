"""What papers say of their own experiments, and which rules of evaluation that breaks."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from headway.experiment.published import Published, judged_published, published_rules
from headway.experiment.rulebook import RULES

PAPERS = {entry.name: entry.load() for entry in entry_points(group="headway.reproductions")}
PAGES = [page.read_text("utf-8") for page in (Path(__file__).parents[3] / "docs" / "papers").glob("*.md")]


def outcomes(said: Published) -> dict[str, str]:
    return {one.rule.name: str(one.outcome) for one in judged_published(said)}


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_each_reproduction_says_it_and_a_page_has_it(name):
    if not hasattr(PAPERS[name], "published"):
        pytest.skip("it declares nothing")
    section = published_rules(PAPERS[name].published)
    assert any(section in page for page in PAGES), section


def test_answers_are_held_to_the_rules_thresholds():
    poor = Published(
        system="open", workloads=3, jobs=4_999, intervals=False, warm_up=False, cool_down=False, load=1.1,
        load_by="sizes", estimates="exact", backfills=False, sanity=("utilisation", "makespan"),
        means_alone=True, levels=5, speedup="linear",
    )  # fmt: skip
    assert {name for name, outcome in outcomes(poor).items() if outcome == "broken"} == {
        "3", "13", "15", "16", "18", "19", "22", "23", "25", "27", "28", "29", "E1",
    }  # fmt: skip
    good = Published(
        system="open", workloads=4, jobs=5_000, intervals=True, warm_up=True, cool_down=True,
        load_by="arrivals", estimates="users", backfills=True, levels=4, speedup="Downey's", feedback=True,
    )  # fmt: skip
    assert {name for name, outcome in outcomes(good).items() if outcome != "kept"} == {"25"}


def test_what_a_paper_does_not_say_is_not_stated():
    silent = outcomes(Published(system="open", workloads=4))
    assert {name for name, outcome in silent.items() if outcome == "not stated"} == {
        "25", "27", "28", "29", "E1",
    }  # fmt: skip
    assert outcomes(Published(system="", intervals=True)) == {"E1": "kept"}
    assert outcomes(Published(system="static", workloads=4, jobs=9_000, intervals=True))["2"] == "noted"


def test_further_rules_are_named_and_must_exist():
    said = Published(system="open", workloads=4, load=0.5, also={"25": "the queue grows"})
    assert "- 25 saturated workloads: the queue grows.\n" in published_rules(said)
    assert {one.name for one in RULES} >= {"25"}
    with pytest.raises(KeyError):
        judged_published(Published(system="open", workloads=4, also={"99": "because"}))
