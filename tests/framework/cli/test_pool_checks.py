"""What ``headway check`` says of pools that share nodes."""

from __future__ import annotations

from headway.cli.pool_checks import check_pools
from headway.model import ClusterDescription, NodeDescription, PoolDescription


def cluster(*, night_open: bool) -> ClusterDescription:
    """Queues batch and night on the same two nodes."""
    pools = (
        PoolDescription(name="batch", priority_tier=2), PoolDescription(name="night", open=night_open),
    )  # fmt: skip
    nodes = tuple(NodeDescription(name=name, processors=4, pools=("batch", "night")) for name in ("n1", "n2"))
    return ClusterDescription(name="c", pools=pools, nodes=nodes)


def test_pools_that_share_nodes_are_named_in_their_order() -> None:
    (said,) = check_pools(cluster(night_open=True), {"night": 5})
    assert (said.ok, said.detail) == (True, "one queue for night (tier 5), batch (tier 2)")


def test_a_stopped_pool_is_to_be_opened_or_managed_or_given_nodes_of_its_own() -> None:
    """A pool that headway manages is closed, too, while its queue is stopped."""
    (said,) = check_pools(cluster(night_open=False), {})
    assert (said.subject, said.ok, said.known) == ("pool night", True, False)
    remedy = "if headway manages the pool, open it; else let headway manage it, or give it nodes of its own"
    assert said.remedy == remedy
