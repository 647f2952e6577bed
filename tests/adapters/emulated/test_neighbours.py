"""Who shares a processor with whom: nodes of one processor give the same rates as nodes of any size."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headway.model import ClusterDescription, JobDescription, Request
from headway.workload import TraceJob
from headway.workload.sharing import Sharing
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.neighbours import Pairs, Places, neighbours

PROCESSORS = 6


def machine() -> Machine:
    return Machine(ClusterDescription.flat(PROCESSORS).in_nodes(), [], 0.0)


def execution(number: int, nodes: list[int], tier: str, use: float) -> Execution:
    job = JobDescription(str(number), 0.0, Request(len(nodes), 10.0))
    placement = tuple((f"P{node + 1}", 1) for node in nodes)
    made = Execution(number, TraceJob(job, 10.0), job, 0.0, 10.0, 10.0, 0.0, placement)
    made.tier, made.use = tier, use
    return made


def test_nodes_of_one_processor_are_pairs_and_others_are_places():
    assert isinstance(neighbours(machine(), Sharing(), Random(1)), Pairs)
    assert isinstance(neighbours(Machine(ClusterDescription.flat(4), [], 0.0), Sharing(), Random(1)), Places)


@given(st.randoms(use_true_random=False), st.booleans())
def test_pairs_go_as_places_say(draw, fixed):
    sharing = Sharing(0.25, 0.5) if fixed else Sharing()
    kept = [kind(machine(), sharing, Random(7)) for kind in (Pairs, Places)]
    there: list[tuple[Execution, Execution]] = []
    for number in range(30):
        if there and draw.random() < 0.4:
            leaving = there.pop(draw.randrange(len(there)))
            for one, each in zip(kept, leaving, strict=True):
                one.leave(each)
        else:
            tier = draw.choice(("foreground", "background"))
            taken = {name for a, _ in there if a.tier == tier for name, _ in a.placement}
            free = [node for node in range(PROCESSORS) if f"P{node + 1}" not in taken]
            if not free:
                continue
            nodes = sorted(draw.sample(free, draw.randint(1, len(free))))
            use = draw.choice((0.25, 0.5, 1.0))
            there.append((execution(number, nodes, tier, use), execution(number, nodes, tier, use)))
            for one, each in zip(kept, there[-1], strict=True):
                one.enter(each)
        if draw.random() < 0.7:
            restless: list[dict[Execution, None]] = [{}, {}]
            for one, found in zip(kept, restless, strict=True):
                one.look(found)
            assert [e.index for e in restless[0]] == [e.index for e in restless[1]]
            for a, b in there:
                assert _slowest(a) == _slowest(b)


def _slowest(execution: Execution) -> float:
    return round(min((execution.paces or {}).values(), default=1.0), 12)
