"""Names of a federation: whatever goes out comes back, and nothing that names something is forgotten."""

from __future__ import annotations

import string
from functools import cache
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import decisions as d
from headway import events as ev
from headway.model import (
    Dependency,
    JobDescription,
    NodeDescription,
    PoolBounds,
    PoolDescription,
    Request,
    Reservation,
)
from headway.model.policy import SitePolicy
from headway_adapters.federation.names import _FIELDS, _OF, Elsewhere, Names

KINDS: dict[str, type] = {kind.__name__: kind for kind in (*get_args(ev.AnyEvent), *get_args(d.AnyDecision))}
#: Fields of events and decisions that hold text, or structs of text, and name nothing of a cluster's.
OTHERS = {
    "reason", "outcome", "message", "tier", "command", "user", "request", "beneficiary", "account", "power",
    "job", "state", "key", "value", "reservation", "decision", "policy", "signal",
    # A site is called by its cluster's name everywhere, and datasets belong to no cluster.
    "dataset", "site", "source", "cluster",
    # What a plugin is asked names things as all clusters' names are.
    "plugin", "verb", "text",
    # And a user is written to in these names.
    "subject",
}  # fmt: skip
#: The same in descriptions.
OTHERS_OF = {
    JobDescription: {"request", "name", "user", "group", "account", "qos", "dependencies", "attributes"},
    # Parts are requests.
    Request: {"gres_per_node", "gres_per_chunk", "features", "least_sizes", "parts", "parts_apart"},
    Dependency: {"kind"},
    NodeDescription: {"gres", "features", "reason", "node_class", "sizes"},
    # What its cluster lacks are kinds of decisions.
    PoolDescription: {"node_class", "bounds", "lacks"},
    # Fields and QOS, which have the same names everywhere.
    PoolBounds: {"lifted"},
    # Its id is renamed by who made it.
    Reservation: {"id", "users", "accounts", "reason"},
    SitePolicy: {
        "associations",
        "limits",
        "minutes",
        "qos",
        "qos_billing",
        "qos_safe",
        "resources",
        "used",
        "weights",
    },
}


def has_text(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.UnionType(types=types):
            return any(map(has_text, types))
        case msgspec.inspect.VarTupleType(item_type=item):
            return has_text(item)
        case msgspec.inspect.TupleType(item_types=items):
            return any(map(has_text, items))
        case msgspec.inspect.StrType() | msgspec.inspect.StructType() | msgspec.inspect.DictType():
            return True
    return False


def fields_of(kind: type) -> dict[str, msgspec.inspect.Type]:
    shape = msgspec.inspect.type_info(kind)
    assert isinstance(shape, msgspec.inspect.StructType)
    return {field.name: field.type for field in shape.fields}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_renamed_or_known_to_name_nothing(kind: str) -> None:
    """A new field of a vocabulary must be thought about."""
    undecided = {name for name, type_ in fields_of(KINDS[kind]).items() if has_text(type_)}
    assert undecided <= set(_FIELDS) | OTHERS | {"pool", "node"}


@pytest.mark.parametrize("kind", OTHERS_OF, ids=lambda kind: kind.__name__)
def test_so_is_every_field_of_a_description(kind: type) -> None:
    texts = {name for name, type_ in fields_of(kind).items() if has_text(type_)}
    assert texts == set(_OF[kind]) | OTHERS_OF[kind]


WORDS = st.text(string.ascii_lowercase + string.digits + ":_[].", min_size=1, max_size=8)


def values(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case msgspec.inspect.StrType():
            return WORDS
        case msgspec.inspect.FloatType():
            return st.integers(0, 1000).map(float)
        case msgspec.inspect.IntType():
            return st.integers(0, 1000)
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.UnionType(types=types):
            return st.one_of([values(each) for each in types])
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values(item), max_size=2).map(tuple)
        case msgspec.inspect.TupleType(item_types=items):
            return st.tuples(*[values(each) for each in items])
        case msgspec.inspect.DictType():
            return st.just({"requested_start": 5})
        case msgspec.inspect.StructType(cls=cls):
            # Requests are made of requests.
            return st.deferred(lambda: structs(cls))
    raise NotImplementedError(str(kind))


@cache
def structs(cls: type) -> st.SearchStrategy[Any]:
    shape = msgspec.inspect.type_info(cls)
    assert isinstance(shape, msgspec.inspect.StructType)
    required = {f.name: values(f.type) for f in shape.fields if f.required}
    optional = {f.name: values(f.type) for f in shape.fields if not f.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: cls(**fields))


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_out_comes_back(kind: str) -> None:
    @settings(max_examples=40, deadline=None)
    @given(structs(KINDS[kind]))
    def holds(thing: Any) -> None:
        names = Names()
        there = names.outward("siteA").renamed(thing)
        assert names.inward("siteA").renamed(there) == thing

    holds()


def test_each_name_is_prefixed() -> None:
    job = JobDescription(
        "12_3", 5, Request(4, 60, required_nodes=("n1",), excluded_nodes=("n2",)), pool="batch", name="x:y",
        array_id="12", reservation="maint", further_pools=("long",),
        dependencies=(Dependency("ended", "7"), Dependency("singleton", "")),
    )  # fmt: skip
    out = Names().outward("siteA")
    assert out.renamed(ev.JobSubmitted(5, job)) == ev.JobSubmitted(
        5,
        JobDescription(
            "siteA:12_3", 5, Request(4, 60, required_nodes=("siteA:n1",), excluded_nodes=("siteA:n2",)),
            pool="siteA:batch", name="x:y", array_id="siteA:12", reservation="siteA:maint",
            further_pools=("siteA:long",),
            # Namesakes count on their own cluster only.
            dependencies=(Dependency("ended", "siteA:7"), Dependency("singleton", "siteA:")),
        ),
    )  # fmt: skip
    assert out.renamed(ev.JobStarted(5, "7", (("n1", 4), ("n2", 2)))) == ev.JobStarted(
        5, "siteA:7", (("siteA:n1", 4), ("siteA:n2", 2))
    )
    assert out.renamed(ev.NodeUp(5, NodeDescription("n1", 4, pools=("a", "b")))) == ev.NodeUp(
        5, NodeDescription("siteA:n1", 4, pools=("siteA:a", "siteA:b"))
    )
    assert out.renamed(ev.DecisionFailed(5, d.Start("7", (("n1", 1),)), "no")) == ev.DecisionFailed(
        5, d.Start("siteA:7", (("siteA:n1", 1),)), "no"
    )


def test_a_job_without_a_pool_is_of_its_clusters_only_one() -> None:
    names = Names()
    names.only_pool["siteA"] = "batch"
    job = JobDescription("1", 0, Request(1, 60))
    assert names.outward("siteA").renamed(job).pool == "siteA:batch"
    assert names.outward("siteB").renamed(job).pool == ""


def test_another_clusters_name_does_not_come_in() -> None:
    names = Names()
    for decision in (
        d.Start("siteB:1"), d.Start("1"), d.Start("siteA:1", (("siteB:n1", 1),)), d.Unreserve("siteB:r"),
        d.Reserve(Reservation("r", 0, 1, nodes=("siteA:n1", "siteB:n1"))),
    ):  # fmt: skip
        with pytest.raises(Elsewhere, match="is not of cluster siteA"):
            names.inward("siteA").renamed(decision)


class TestReservations:
    def test_one_that_is_kept_for_a_job_carries_the_jobs_name(self) -> None:
        names = Names()
        there = Reservation("job_123", 0, 10, nodes=("n1",), ours=True)
        shown = names.outward("siteA").renamed(there)
        assert (shown.id, shown.job_id) == ("job_siteA:123", "siteA:123")
        assert names.inward("siteA").renamed(shown) == there
        # Also when it is made from here, and when nothing is remembered.
        fresh = Names()
        assert fresh.inward("siteA").renamed(shown).id == "job_123"
        assert fresh.outward("siteA").renamed(there).id == "job_siteA:123"
        assert fresh.cluster_of_reservation("job_siteA:123") == "siteA"

    def test_one_that_headway_named_keeps_its_name_also_after_a_restart(self) -> None:
        made = Reservation("r1", 0, 10, pool="siteA:batch", nodes=("siteA:n1",), ours=True)
        names = Names()
        there = names.inward("siteA").renamed(made)
        assert there == Reservation("r1", 0, 10, pool="batch", nodes=("n1",), ours=True)
        for one in (names, Names()):
            assert one.outward("siteA").renamed(there) == made
            assert one.cluster_of_reservation("r1") == "siteA"
            assert one.inward("siteA").renamed(d.Unreserve("r1")) == d.Unreserve("r1")

    def test_of_two_that_are_called_alike_the_second_is_prefixed(self) -> None:
        names = Names()
        there = Reservation("r1", 0, 10, ours=True)
        assert names.outward("siteA").renamed(there).id == "r1"
        assert names.outward("siteB").renamed(there).id == "siteB:r1"
        assert names.inward("siteB").renamed(d.Unreserve("siteB:r1")) == d.Unreserve("r1")
        with pytest.raises(Elsewhere):
            names.inward("siteB").renamed(d.Unreserve("r1"))

    def test_everybody_elses_is_prefixed(self) -> None:
        names = Names()
        for local in ("maint", "job_of_ann", "r:1"):
            shown = names.outward("siteA").renamed(Reservation(local, 0, 10))
            assert shown.id == f"siteA:{local}"
            assert names.inward("siteA").renamed(shown).id == local

    def test_one_that_is_over_or_was_refused_leaves_its_name(self) -> None:
        names = Names()
        mine = names.inward("siteA").renamed(Reservation("r1", 0, 1, ours=True))
        names.not_made("r1")
        assert names.inward("siteB").renamed(Reservation("r1", 0, 1, ours=True)) == mine
        names.outward("siteB").renamed(mine)
        names.not_made("r1")
        assert names.cluster_of_reservation("r1") == "siteB"
        names.forget("r1")
        assert names.cluster_of_reservation("r1") == ""
