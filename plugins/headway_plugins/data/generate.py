"""The workload of Phan, Ranganathan and Sion 2005, table 2: analysis jobs after those of CMS.

What the paper leaves open: a job has 1 to 5 different objects, drawn by Zipf probabilities with exponent 1;
the remote store of an object is uniform; remote stores have the same rates to nodes as to local stores; all
sizes (MB) and rates (kbps) are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway_plugins.data.model import Batch, K
from headway_plugins.draws import Draws

#: The least value, and how many there are: MB, kbps over the wide area, kbps in the local network.
SIZES, WIDE, LOCAL = (50, 1451), (700, 601), (7000, 6001)


@dataclass(frozen=True)
class Recipe:
    """What is drawn: counts, and how jobs choose their objects."""

    jobs: int = 100
    nodes: int = 20
    stores: int = 20
    remotes: int = 20
    objects: int = 50
    #: Seconds of computing for each GB.
    k: float = K
    #: Objects of a job, both included.
    low: int = 1
    high: int = 5
    #: Exponent of Zipf's law over the objects' numbers.
    zipf: float = 1.0


def generate(draws: Draws, recipe: Recipe) -> Batch:
    """One batch: sizes, sources, rates by rows, and then job by job its number of objects and these."""

    def uniform(span: tuple[int, int]) -> int:
        return span[0] + draws.below(span[1])

    def rates(rows: int, columns: int, span: tuple[int, int]) -> list[list[int]]:
        return [[uniform(span) for _ in range(columns)] for _ in range(rows)]

    sizes = [uniform(SIZES) for _ in range(recipe.objects)]
    sources = draws.several(recipe.objects, recipe.remotes)
    remote_store = rates(recipe.remotes, recipe.stores, WIDE)
    store_node = rates(recipe.stores, recipe.nodes, LOCAL)
    remote_node = rates(recipe.remotes, recipe.nodes, WIDE)
    weights = [1 / (at + 1) ** recipe.zipf for at in range(recipe.objects)]
    jobs = []
    for _ in range(recipe.jobs):
        count = recipe.low + draws.below(recipe.high - recipe.low + 1)
        jobs.append(_chosen(draws, weights, min(count, recipe.objects)))
    return Batch(sizes, sources, remote_store, store_node, remote_node, jobs, recipe.k)


def _chosen(draws: Draws, weights: Sequence[float], count: int) -> list[int]:
    """So many different objects, each by its weight among those that are left."""
    left = list(range(len(weights)))
    chosen = []
    for _ in range(count):
        wanted = draws.unit() * sum(weights[at] for at in left)
        running, found = 0.0, left[-1]
        for at in left:
            running += weights[at]
            if running > wanted:
                found = at
                break
        left.remove(found)
        chosen.append(found)
    return chosen
