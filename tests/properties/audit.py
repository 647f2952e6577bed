"""An independent look at what the emulated cluster did: its events, counted again from nothing."""

from __future__ import annotations

from collections import Counter, defaultdict

from building import Run

from headway import events as ev
from headway.model import ClusterDescription, JobDescription, Placement, processors_of


class Use:
    """What is taken of each flat pool and of each node."""

    def __init__(self, cluster: ClusterDescription) -> None:
        self.flat = {pool.name: pool.processors for pool in cluster.pools if pool.flat}
        self._nodes = {node.name: node for node in cluster.nodes}
        self._only = cluster.pools[0].name
        self._processors: Counter[str] = Counter()
        self._memory: Counter[str] = Counter()
        self._gres: dict[str, Counter[str]] = defaultdict(Counter)

    def pool_of(self, job: JobDescription) -> str:
        return job.pool or self._only

    def move(self, job: JobDescription, placement: Placement, sign: int) -> None:
        """The job takes its place (+1) or gives it back (-1)."""
        pool, used = self.pool_of(job), self._processors
        if pool in self.flat:
            used[pool] += sign * job.request.processors
            assert 0 <= used[pool] <= self.flat[pool], f"{job.id} oversubscribes {pool}"
            return
        for name, count in placement:
            request, node = job.request, self._nodes[name]
            used[name] += sign * count
            need = request.memory_per_node or (
                0 if request.exclusive else request.memory_per_processor * count
            )
            self._memory[name] += sign * need
            assert 0 <= used[name] <= node.processors, f"{job.id} oversubscribes {name}"
            assert 0 <= self._memory[name] <= (node.memory or float("inf"))
            for resource, amount in request.gres_per_node:
                self._gres[name][resource] += sign * amount
                assert 0 <= self._gres[name][resource] <= dict(node.gres)[resource]


def audit(run: Run, cluster: ClusterDescription) -> None:
    """Every job on nodes that exist, are up and suit it; nothing given twice; each job over once."""
    use = Use(cluster)
    jobs: dict[str, JobDescription] = {}
    where: dict[str, Placement] = {}
    down: set[str] = set()
    ended: Counter[str] = Counter()
    for event in run.adapter.told:
        match event:
            case ev.JobSubmitted(job=job):
                assert job.id not in jobs
                jobs[job.id] = job
            case ev.JobChanged(job=job):
                jobs[job.id] = job
            case ev.JobStarted(job_id=job_id, placement=placement):
                assert job_id not in where, f"{job_id} started twice"
                assert not ended[job_id]
                where[job_id] = placement
                use.move(jobs[job_id], placement, +1)
                if use.pool_of(jobs[job_id]) not in use.flat:
                    suits(jobs[job_id], placement, cluster)
                    assert not down & {name for name, _ in placement}
            case ev.JobRequeued(job_id=job_id):
                use.move(jobs[job_id], where.pop(job_id), -1)
            case ev.JobEnded(job_id=job_id):
                ended[job_id] += 1
                if job_id in where:
                    use.move(jobs[job_id], where.pop(job_id), -1)
            case ev.NodeDown(node=name):
                down.add(name)
            case ev.NodeUp(node=node):
                down.discard(node.name)
        shared(jobs, where)
    assert not where, "jobs were left on the machine"
    assert all(count == 1 for count in ended.values())
    over = {job_id for job_id, state in run.states.items() if state not in ("pending", "running")}
    assert over == set(ended)


def suits(job: JobDescription, placement: Placement, cluster: ClusterDescription) -> None:
    """The placement has the shape that the request asks for."""
    nodes = {node.name: node for node in cluster.nodes}
    request = job.request
    names = [name for name, _ in placement]
    pool = job.pool or cluster.pools[0].name
    assert len(set(names)) == len(names)
    assert processors_of(placement) >= request.processors
    if not request.exclusive and not request.nodes and not request.required_nodes:
        assert processors_of(placement) == request.processors
    assert set(request.required_nodes) <= set(names)
    assert not set(request.excluded_nodes) & set(names)
    if request.nodes:
        assert len(names) == request.nodes
    for name, count in placement:
        assert count >= 1
        assert pool in nodes[name].pools
        assert set(request.features) <= set(nodes[name].features)
        if request.exclusive:
            assert count == nodes[name].processors
        elif request.processors_per_node and request.nodes:
            assert count == request.processors_per_node


def shared(jobs: dict[str, JobDescription], where: dict[str, Placement]) -> None:
    """No job that asked for whole nodes has a neighbour."""
    tenants: Counter[str] = Counter(name for placement in where.values() for name, _ in placement)
    for job_id, placement in where.items():
        if jobs[job_id].request.exclusive:
            assert all(tenants[name] == 1 for name, _ in placement), f"{job_id} shares its node"
