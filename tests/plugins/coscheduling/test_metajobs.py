"""Metajobs through the real scheduler, on emulated sites with one clock."""

from __future__ import annotations

from building import traced
from metajob_world import World, multiple, sites


def job(name: str, processors: int = 1, seconds: float = 100, submit: float = 0, user: str = "ann", **more):
    return traced(name, processors, seconds, submit, pool=f"{name.partition(':')[0]}:q", user=user, **more)


def test_all_parts_start_at_one_instant():
    jobs = [job("a:1", 8, 50, user="x"), job("a:2", 6, 100), job("b:1", 2, 100)]
    world = World(sites(a=8, b=8), jobs)
    request = world.submit(multiple(8, A=(6, 6), B=(2, 2)), {"A": "a:2", "B": "2" if False else "b:1"})
    world.run()
    assert world.replies[request].outcome == "accepted"
    assert world.problems == []
    assert world.starts == {"a:1": 0.0, "a:2": 50.0, "b:1": 50.0}
    assert world.status()["phase"] == "over" and world.kept == {}
