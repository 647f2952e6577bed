"""Plugins of headway that observe name the kinds of events on which they act, and act on no other kind."""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from any_events import AnyEvents
from building import alike, federated, node_cluster, plugged

from headway.decisions import Annotate, AnyDecision, Decision
from headway.energy.profiles import load_profile, with_energy
from headway.errors import UserError
from headway.events import AnyEvent, DecisionFailed, Event, all_but
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dataset, Link, Site, Store
from headway.partitions.description import TorusConfig
from headway.plugins import Catalogue, PluginConfig, Plugins, Traits, make_plugin, traits_of
from headway.plugins.hook_names import hooks_of
from headway.scheduler import Scheduler
from headway.state import Job
from headway_plugins.policies.easy import Easy

#: Plugins that are shown all events, and why.
SHOWN_ALL = {
    "follow": "a waiting job is compared again after `every` only if anything happened since",
    "power-cap": "a week in which nothing happened ends the wait for a higher cap",
}

APPLICATIONS = "applications:\n  ft: {formula: 1/P, sizes: {P: processors}, match: ^ft-}\n"
KEEPING = {"conservative": {"guarantees": "keep"}}
WINDOW = {"windows": {"patch": {"days": ["thu"], "from": "00:00", "to": "01:00"}}}
#: Options that a plugin cannot do without, or with which it observes.
OPTIONS: dict[str, dict[str, Any]] = {
    "bundling": {"min_processors": 2},
    "calendar": WINDOW,
    "large-jobs": WINDOW,
    "limits": {"of": {"user": {"*": {"processors": 3}}}},
    "metajobs": {"machines": {"A": {"pool": "a:q"}, "B": {"pool": "b:q"}}},
    "preemption": {"rules": [{"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}, "how": "suspend"}]},
    "scopred": {"applications": "applications.yaml"},
    "scopred-sizing": {"applications": "applications.yaml"},
    "conservative": KEEPING["conservative"],
    "select": {"mostly_small": "conservative", "mostly_large": "hybrid-los", "window": 4, "options": KEEPING},
    "power-cap": {"watts": 1000.0},
    "multifactor": {"weights": "from-slurm"},
    "fair-tree": {"accounts": {"a": {"users": {"u": 1}}}},
}
ATTRIBUTES: list[dict[str, Any]] = [
    {}, {}, {"requested_start": 15.0}, {"data": ["d"]}, {"switches": "1@10s"},
    {"window": {"job": "x", "stage": 1, "reward": 1, "priority": 1}},
    {"deadline": 1e6, "security": {"bytes": 1e6}},
]  # fmt: skip
#: Decisions that are not carried out for a plugin: with them it needs what these tests have not.
WITHOUT = {"sareg": Annotate, "ns-edf": Annotate}
#: What is kept by the identity of objects, and what is looked up where that is not known.
CACHES = {("Occupancy", "_masks"), ("Geometry", "_boxes"), ("Geometry", "_asked")}
CAPABLE = frozenset(get_args(AnyDecision))


def clusters() -> dict[str, ClusterDescription]:
    """Clusters of which each plugin works on at least one."""
    energy = load_profile("present-day")
    sites = federated(
        Site("a", store=Store()), Site("b", store=Store()),
        links=[Link("a", "b", 10.0), Link("b", "a", 10.0)], datasets=[Dataset("d", 60, ("a",))],
    )  # fmt: skip
    nodes = node_cluster(*alike(4, 2), pools=("pool",), suspended_lend=True)
    return {
        "counts": with_energy(
            msgspec.structs.replace(ClusterDescription.flat(8), suspended_lend=True), energy
        ),
        "nodes": with_energy(nodes, energy),
        "sites": sites,
        "torus": TorusConfig(shape=(2, 1, 2)).description(),
    }


def _has(cluster: ClusterDescription, plugin: Any) -> bool:
    """Whether the cluster has what the plugin requires."""
    there = {
        "nodes": cluster.nodes,
        "energy": cluster.energy,
        "lending": cluster.suspended_lend,
        "policy": True,
    }
    return all(there[what] for what in traits_of(plugin).requires)


def observing() -> list[str]:
    """The installed plugins with the hook."""
    catalogue = Catalogue()
    found = [name for name in catalogue.loadable() if "observe" in hooks_of(catalogue.get(name, "test"))]
    return sorted({*found, "conservative"})


def made(name: str, folder: Path) -> Any:
    """The plugin with options with which it observes."""
    (folder / "applications.yaml").write_text(APPLICATIONS)
    config = PluginConfig(name, OPTIONS.get(name, {}), "test", beside=folder)
    return make_plugin(Catalogue().get(name, "test"), config)


# ---------------------------------------------------------------------- what a plugin knows


def known(thing: Any, above: tuple[int, ...] = ()) -> Any:
    """All that an object holds, in values that can be compared; what the framework holds by its names."""
    if id(thing) in above:
        return "above"
    within = (*above, id(thing))
    if isinstance(thing, np.ndarray):
        return thing.tolist()
    if isinstance(
        thing, type | types.FunctionType | types.MethodType | types.BuiltinFunctionType | types.ModuleType
    ):
        return getattr(thing, "__qualname__", thing.__name__)
    if isinstance(thing, Mapping):
        return [(known(key, within), known(value, within)) for key, value in thing.items()]
    if isinstance(thing, list | tuple | deque):
        return [known(one, within) for one in thing]
    if isinstance(thing, set | frozenset):
        return sorted(repr(known(one, within)) for one in thing)
    if isinstance(thing, np.random.Generator):
        return repr(thing.bit_generator.state)
    if isinstance(thing, random.Random):
        return repr(thing.getstate())
    of = type(thing).__module__
    if of.startswith(("headway.state", "headway.view", "headway.resources", "headway.scheduler")):
        return type(thing).__name__, str(getattr(thing, "id", getattr(thing, "name", "")))
    names = [*getattr(thing, "__dict__", ()), *_slots(type(thing))]
    if not of.startswith("headway") or not names:
        return repr(thing) if of in ("builtins", "enum") or of.startswith("headway") else type(thing).__name__
    kind = type(thing).__name__
    held = {
        name: getattr(thing, name)
        for name in names
        if name != "traits" and (kind, name) not in CACHES and hasattr(thing, name)
    }
    return kind, known(held, within)


def _slots(kind: type) -> list[str]:
    return [
        name
        for one in kind.__mro__
        for name in _names(getattr(one, "__slots__", ()))
        if not name.startswith("__")
    ]


def _names(slots: str | tuple[str, ...]) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


# ---------------------------------------------------------------------- as named, and all


class HighFirst:
    """Jobs of the QOS ``high`` come first."""

    @hookimpl
    def queue_key(self, job: Job) -> tuple[str]:
        return (job.description.qos,)


class Twin:
    """Two schedulers with the plugin, of which the second shows it all events."""

    def __init__(self, name: str, cluster: ClusterDescription, folder: Path) -> None:
        self.name, self.cluster, self.plugins = name, cluster, [made(name, folder), made(name, folder)]
        second = self.plugins[1]
        second.traits = replace(traits_of(second), observes=None)
        self.schedulers = [self._scheduler(plugin) for plugin in self.plugins]

    def _scheduler(self, plugin: Any) -> Scheduler:
        plugins = Plugins()
        plugins.add(self.name, plugin)
        plugins.add("high-first", HighFirst())
        plugins.add("easy", Easy())
        return Scheduler(self.cluster, plugins, seed=7, capabilities=CAPABLE - {WITHOUT.get(self.name)})

    def run(self, seed: int, steps: int) -> set[type[Event]]:
        """Both see and know the same, step by step; the kinds of events that came."""
        one, other = self.schedulers
        world, decided = AnyEvents(self.cluster, seed, ATTRIBUTES), [[], []]
        now = 0.0
        for step in range(steps):
            now += world.rng.choice([0.0, 1.0, 3.0, 20.0])
            events = world.at(now, decided[0], one.state)
            decided = [one.step(now, events), other.step(now, events)]
            assert decided[0] == decided[1], f"step {step}: {events}"
            first, second = map(known, self.plugins)
            assert first == second, f"step {step}: {events}"
        assert one.checkpoint() == other.checkpoint()
        assert sorted(one.notices) == sorted(other.notices)
        assert list(map(str, one.problems)) == list(map(str, other.problems))
        assert not [problem for problem in one.problems if problem.plugin == self.name and problem.traceback]
        return world.told


@pytest.mark.parametrize("name", [name for name in observing() if name not in SHOWN_ALL])
def test_a_plugin_acts_only_on_the_events_that_it_names(name: str, tmp_path: Path) -> None:
    came: set[type[Event]] = set()
    for seed, cluster in enumerate(clusters().values()):
        if not _has(cluster, made(name, tmp_path)):
            continue
        try:
            twin = Twin(name, cluster, tmp_path)
        except UserError:
            # It is for other clusters.
            continue
        came |= twin.run(seed, 80)
    assert came, f"{name} works on none of the clusters"


def test_any_events_are_of_every_kind() -> None:
    came: set[type[Event]] = set()
    for name, policies in (("nodes", [Easy()]), ("sites", [Easy()]), ("counts", [])):
        cluster = clusters()[name]
        scheduler = Scheduler(cluster, plugged(*policies), capabilities=CAPABLE)
        world, decided = AnyEvents(cluster, 1, ATTRIBUTES), list[Decision]()
        for now in range(1000):
            decided = scheduler.step(float(now), world.at(float(now), decided, scheduler.state))
        came |= world.told
    assert came == set(get_args(AnyEvent))


@pytest.mark.parametrize("name", observing())
def test_a_plugin_names_the_events_on_which_it_acts(name: str, tmp_path: Path) -> None:
    named = traits_of(made(name, tmp_path)).observes
    if name in SHOWN_ALL:
        assert named is None, f"{name} names its events: take it out of SHOWN_ALL"
    else:
        assert named is not None, (
            f"plugin {name}: expected its trait `observes` to name the events on which it acts; if it "
            "acts on all, put it into SHOWN_ALL with the reason"
        )


def test_all_but_some_kinds_of_events() -> None:
    assert set(all_but(DecisionFailed)) == set(get_args(AnyEvent)) - {DecisionFailed}
    assert Traits(observes=all_but()).observes == get_args(AnyEvent)
