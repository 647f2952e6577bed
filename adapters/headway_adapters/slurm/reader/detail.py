"""What the writer and the adapter know of a pending job beyond the common form."""

from __future__ import annotations

from dataclasses import dataclass

from headway_adapters.polling.resubmission import Mark
from headway_adapters.slurm import marker


@dataclass(frozen=True)
class Detail:
    """What the writer and the adapter need to know about a pending job beyond the common form."""

    #: Priority 0: Slurm does not start it.
    held: bool
    #: Held by the submit filter, or released by its user through it: Slurm calls it the user's hold, and
    #: the user could release it.
    from_filter: bool = False
    #: Its AdminComment may be written.
    comment_free: bool = True
    #: Its AdminComment says that headway holds it.
    ours: bool = False
    #: Held for headway, and its AdminComment says nothing.
    unmarked: bool = False
    #: Slurm itself holds it, since no node could run it as it was; any change of it would release it.
    refused: bool = False
    #: What it depends on in Slurm's words.
    dependency: str = ""
    #: It is released, and Slurm says that it depends on something.
    unmet: bool = False
    #: All elements of an array that could start but for Slurm's word about their dependencies.
    unsaid: bool = False
    #: They were released for that word, and are to be held again.
    asked: bool = False
    #: headway gave it its begin time for that.
    begins_for_us: bool = False
    pin: marker.Pin | None = None
    #: Its AdminComment, if that is headway's; "" for others.
    mark: str = ""
    #: The planned start that headway shows as its begin time.
    shown: marker.Shown | None = None
    #: The begin time that it has but for that, seconds since the epoch; 0: none.
    begin: int = 0
    #: The node list that stands in Slurm now.
    node_list: tuple[str, ...] = ()
    least_nodes: int = 0
    most_nodes: int = 0
    #: Its user stated no greatest number of nodes, which Slurm may not show of it later.
    nodes_open: bool = False
    restarts: int = 0
    #: The partitions that its user listed, if more than one: a start must choose one.
    listed: tuple[str, ...] = ()
    #: It waits in a partition of background jobs, from an earlier start.
    behind: bool = False
    #: What to name in a command that concerns this record: a job or the rest of an array.
    record: str = ""
    #: Another reason than the hold for which headway must not take it over.
    managed: bool = True
    #: The nodes that its user excluded.
    excluded: tuple[str, ...] = ()
    #: What its user wrote, and what is written behind that.
    comment: str = ""
    #: It is a copy or an original of a job that goes to another cluster.
    route: Mark | None = None
    #: Its name for all and when it was submitted, if it came from another cluster.
    came: str = ""
    #: Of a heterogeneous job: its components, the leader first, each by its own number in Slurm. The pins
    #: of a start are theirs; the job's own is the first of them.
    parts: tuple[tuple[str, Detail], ...] = ()
