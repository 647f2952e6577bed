"""Cases of data co-scheduling by the code of ``headway_plugins.data``; the README of the vectors says what a
case holds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from headway_plugins.data.evaluation import WITHOUT_STORES, evaluate, micro
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.genetic import Genetics, cross_order, cross_string, evolve, reverse, select
from headway_plugins.data.greedy import greedy
from headway_plugins.data.model import Batch, Replica, Tables, lower_bound
from headway_plugins.data.population import Fitness
from headway_plugins.draws import Draws


class Listed:
    """Numbers of a list in turn."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def random(self):
        return next(self._numbers)


def draws_of(case) -> Draws:
    found = case["draws"]
    return Draws(np.random.default_rng(found["seed"]) if "seed" in found else Listed(found["list"]))


def instance(found: dict[str, Any]) -> Tables:
    free = found.get("nact")
    replicas = {int(name): Replica(*at) for name, at in (found.get("replicas") or {}).items()}
    if "sizes" not in found:
        direct, nodes = found.get("direct"), len(found["compute"][0]) if found["compute"] else 1
        # Without replicas, times of stores may be missing.
        transfer = found.get("td") or [[0.0]] * len(direct or ())
        hop = found.get("hop") or [[[0.0] * nodes]] * len(transfer)
        return Tables(found["jobs"], transfer, hop, found["compute"], direct, free, replicas)
    batch = Batch(
        found["sizes"], found["sources"], found["remote_store"], found["store_node"], found["remote_node"],
        found["jobs"], found.get("k", 300),
    )  # fmt: skip
    return batch.tables(free, replicas)


def answer_evaluate(case):
    tables = instance(case["instance"])
    answers = []
    for order, node, *store in case["chromosomes"]:
        makespan, turns = evaluate(
            tables, case.get("mode", "event"), order, node, (store[0] or []) if store else [],
            direct=case.get("direct", False),
        )  # fmt: skip
        answers.append({"makespan": makespan, "trace": [list(turn) for turn in turns]})
    return answers


def answer_greedy(case):
    draws = draws_of(case)
    found = greedy(
        instance(case["instance"]), draws, jobs=case["jobs"], rep=case["rep"],
        mode=case.get("mode", "event"), direct=case.get("direct", False),
    )  # fmt: skip
    return {"node": found.node, "store": found.store, "makespan": found.makespan, "drawn": draws.count}


def answer_operators(case):
    answers = []
    for name, *rest in case["steps"]:
        if name == "select":
            answers.append(select(*rest))
        else:
            calls = {"cross_order": cross_order, "cross_string": cross_string, "reverse": reverse}
            arrays = [np.array(one) if isinstance(one, list) else one for one in rest]
            answers.append(calls[name](*arrays).tolist())
    return answers


def answer_exhaust(case):
    """Orders, then nodes, then stores, each counted up from its last place."""
    tables, mode = instance(case["instance"]), case.get("mode", "event")
    jobs, objects = len(tables.jobs), tables.objects
    replicas = mode not in WITHOUT_STORES
    nodes = itertools.product(range(tables.nodes), repeat=jobs)
    stores = itertools.product(range(tables.local_stores), repeat=objects) if replicas else [()]
    plans = itertools.product(itertools.permutations(range(jobs)), nodes, stores)
    fitness = Fitness(tables, mode, direct=case.get("direct", False))
    best, count, first = None, 0, None
    while some := list(itertools.islice(plans, 20_000)):
        ends = fitness.of(np.array([[*order, *node, *store] for order, node, store in some]))
        for plan, end in zip(some, ends.tolist(), strict=True):
            if best is None or micro(end) < micro(best):
                best, count, first = end, 0, plan
            count += micro(end) == micro(best)
    return {"optimum": best, "count": count, "first": [list(one) for one in first[: 3 if replicas else 2]]}


def answer_ga(case):
    draws = draws_of(case)
    names = {"mu": "parents", "lambda": "children"}
    options = ("generations", "mutation", "seed_greedy", "stop_when_equal")
    genetics = {names.get(name, name): case[name] for name in (*names, *options) if name in case}
    found = evolve(
        instance(case["instance"]), draws, Genetics(**genetics), mode=case.get("mode", "event"),
        direct=case.get("direct", False),
    )  # fmt: skip
    return {
        "best": list(found.strings), "history": found.history, "evaluations": found.evaluations,
        "drawn": draws.count,
    }  # fmt: skip


def answer_generate(case):
    draws = draws_of(case)
    other = {"a": "zipf", "exponent": "zipf"}
    params = {other.get(name, name): value for name, value in case.get("params", {}).items()}
    for name in [name for name, value in params.items() if isinstance(value, list)]:
        params["low"], params["high"] = params.pop(name)
    batch = generate(draws, Recipe(**params))
    return {"instance": dict(vars(batch)), "drawn": draws.count}


def answer_bound(case):
    replicas = case.get("mode", "event") not in WITHOUT_STORES
    return {"bound": lower_bound(instance(case["instance"]), replicas=replicas)}


def answer(case: dict[str, Any]) -> Any:
    """What the case's ``expected`` holds."""
    kinds = {
        "evaluate": answer_evaluate, "greedy": answer_greedy, "operators": answer_operators,
        "exhaust": answer_exhaust, "ga": answer_ga, "generate": answer_generate, "bound": answer_bound,
    }  # fmt: skip
    return kinds[case["kind"]](case)
