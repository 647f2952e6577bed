"""What stores are to have for the jobs that wait."""

from __future__ import annotations

from headway.model import Dataset, Link, Site, Sites, Store
from headway.state.catalogue import Catalogue
from headway_plugins.data.stores import Need, droppable, fill, why_never


def catalogue(capacity: int = 1000) -> Catalogue:
    sites = Site("a", store=Store()), Site("b", store=Store(capacity=capacity)), Site("c")
    datasets = (*(Dataset(name, 400, ("a",)) for name in "defg"), Dataset("own", 100, ("b",)))
    return Catalogue(Sites(sites, (Link("a", "b", 10.0), Link("b", "a", 10.0)), datasets))


def test_a_store_is_filled_job_by_job_and_closed_by_the_first_that_does_not_fit():
    needs = [Need("1", "b", ("d",)), Need("2", "b", ("e", "f")), Need("3", "b", ("g",))]
    found = fill(catalogue(), needs, {})
    assert found.wanted == {("d", "b"): "1"} and found.full == {"b": "2"}
    assert found.kept["b"] == {"d", "own"}


def test_a_job_whose_data_never_fit_closes_nothing():
    needs = [Need("1", "b", ("d", "e", "f")), Need("2", "b", ("g",))]
    found = fill(catalogue(), needs, {})
    assert found.wanted == {("g", "b"): "2"} and found.full == {}


def test_what_is_read_what_comes_and_what_is_copied_from_here_stays():
    known = catalogue(2000)
    for name in "de":
        known.arrives(name, "b", 1.0)
    known.begins("d", "a", "b", 2.0)
    known.begins("f", "b", "a", 2.0)
    found = fill(known, [], {"b": {"e"}})
    assert found.kept["b"] == {"d", "e", "f", "own"}
    assert droppable(known, "b", {"own"}, {("d", "b"): 5.0}) == ["e", "d"]


def test_why_data_never_come():
    known = catalogue()
    assert why_never(known, ["d"], "b") == "" == why_never(known, ["d"], "a")
    assert why_never(known, ["d"], "c") == "it reads dataset d, and c has no store"
    known.loses("d", "a")
    assert why_never(known, ["d"], "b") == "no site has dataset d"
