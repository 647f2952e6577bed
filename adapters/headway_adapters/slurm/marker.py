"""What headway writes into a job's AdminComment, so that any later headway knows what was done.

Slurm shows one node list, whether its user asked for it or headway pinned it, and one kind of
administrator's hold, whether an administrator or headway set it. The AdminComment (which only administrators
can write) tells:

=====================================  =====================================================
``headway:new``                        set by the submit filter: held for headway. Slurm calls
                                       such a hold the user's; headway makes it its own.
``headway:held``                       held by headway
``headway:new;nodes=any``              the same, of a job whose user stated no greatest number of nodes:
``headway:held;nodes=any``             Slurm 24.11 shows the least as the greatest, too, while such a job
                                       is held and was never looked at by its scheduler
``headway:asked=1795721953``           released with this begin time (seconds since the epoch) that lies far
                                       ahead, so that Slurm looks at what it depends on
                                       (:mod:`headway_adapters.slurm.asking`); also with ``;nodes=any``
``headway:pin=n[1-2];asked=n1;``       pinned to n1 and n2 for a start; its user had asked for
``nodes=0-0;cpus=n1:4,n2:4;run=0``     node n1 and no number of nodes; execution number 0
``;resv=1``                            and put into the reservation that headway keeps for it
``;list=a,b``                          and put into one of the partitions that its user had listed
``;excl=n7|n3,n4``                     sent there by excluding all other nodes, which changed the lists of
                                       a heterogeneous job's components: theirs, in order
``;shown=1795721953``                  behind any of these but ``new`` and ``asked``: it has this begin time
                                       (seconds since the epoch) to show its planned start
``;begin=1795720000``                  and behind that: the begin time that it had before
=====================================  =====================================================

Jobs that go to another cluster (:mod:`headway_adapters.polling.resubmission`):

=====================================  =====================================================
``headway:copy=north:17;as=north:17``  a copy of job 17 of cluster north, which is no job yet; its name for
``@1795721953``                        all, and when it was submitted first (seconds since the epoch)
``headway:sealed=north:17;as=...``     the same, in whose favour the original may be cancelled
``headway:leaving=south:99``           an original that goes to cluster south, where its copy is job 99
``;run=2``                             behind that: it ran before, and this would be execution number 2
``;from=north:17@1795721953``          behind any other mark, also an administrator's hold: it came from
                                       elsewhere and has this name for all
=====================================  =====================================================

Each of them ends with ``;epoch=7``, the number of the daemon that wrote it
(:mod:`headway_adapters.slurm.fence`), which is taken off where a record is read.
A comment that is not ours is never overwritten; such a job is started without a marker.
"""

from __future__ import annotations

import re

import msgspec

from headway.model import Placement
from headway_adapters.polling.resubmission import COPY, LEAVING, PLACE, SEALED, Mark
from headway_adapters.polling.words import Unfit
from headway_adapters.slurm import hostlist

PREFIX = "headway:"
NEW = PREFIX + "new"
HELD = PREFIX + "held"
ASKED = PREFIX + "asked="
_ANY_NODES = ";nodes=any"
_SHOWN = re.compile(r";shown=([0-9]{1,11})(?:;begin=([0-9]{1,11}))?(?=;|$)")
#: The number of the daemon that wrote a mark (:mod:`headway_adapters.slurm.fence`), at its end.
_EPOCH = re.compile(r";epoch=([0-9]{1,15})$")
_ORIGIN = re.compile(rf";from=(({PLACE.pattern})@([0-9]{{1,11}}))(?=;|$)")
_COPY = re.compile(
    rf"{PREFIX}({COPY}|{SEALED})=({PLACE.pattern});as=({PLACE.pattern})@([0-9]{{1,11}})(?:{_ANY_NODES})?"
)
_LEAVING = re.compile(
    rf"{PREFIX}{LEAVING}=({PLACE.pattern})(?:;run=([0-9]{{1,9}}))?(?:;from=[^;]*)?(?:{_ANY_NODES})?"
)


class Shown(msgspec.Struct, frozen=True):
    """A planned start that headway shows as the job's begin time."""

    #: Seconds since the epoch.
    time: int
    #: The begin time that the job had before, seconds since the epoch; 0: none.
    begin: int = 0

    def text(self) -> str:
        """Behind a mark."""
        return f";shown={self.time}" + (f";begin={self.begin}" if self.begin else "")


class Pin(msgspec.Struct, frozen=True):
    """A start that headway asked for, and what to restore if it does not happen."""

    nodes: tuple[str, ...]
    #: The node list that the user asked for.
    asked: tuple[str, ...] = ()
    #: The least and most nodes that the user asked for; 0: not stated.
    least: int = 0
    most: int = 0
    #: Processors on each node, as planned.
    placement: Placement = ()
    #: How often the job had been requeued when it was pinned.
    restarts: int = 0
    #: It was put into the reservation that headway keeps for it.
    reserved: bool = False
    #: Of a heterogeneous job's leader, whose node list Slurm does not change: what the users of its
    #: components, the leader first, had excluded.
    excluded: tuple[tuple[str, ...], ...] = ()
    #: The partitions that the user listed, if more than one: Slurm shows the chosen one alone.
    listed: tuple[str, ...] = ()
    #: Its name for all and when it was submitted, if it came from another cluster.
    came: str = ""
    #: The planned start that was shown when it was pinned. A pin that Slurm refuses may be there in part.
    shown: Shown | None = None

    def text(self) -> str:
        """The AdminComment. Names must have been validated."""
        counts: dict[int, list[str]] = {}
        for name, processors in self.placement:
            counts.setdefault(processors, []).append(name)
        cpus = "/".join(f"{hostlist.compress(group)}:{n}" for n, group in sorted(counts.items()))
        return (
            f"{PREFIX}pin={hostlist.compress(self.nodes)};asked={hostlist.compress(self.asked)};"
            f"nodes={self.least}-{self.most};cpus={cpus};run={self.restarts}"
            f"{';resv=1' if self.reserved else ''}"
            f"{_behind(self.came)}"
            f"{';list=' + ','.join(self.listed) if self.listed else ''}"
            f"{';excl=' + '|'.join(map(hostlist.compress, self.excluded)) if self.excluded else ''}"
            f"{_showing(self.shown)}"
        )


def is_ours(comment: str) -> bool:
    """Whether an AdminComment may be overwritten."""
    return not comment or comment.startswith(PREFIX)


def without_epoch(mark: str) -> str:
    """The mark without the epoch at its end."""
    return _EPOCH.sub("", mark) if ";epoch=" in mark else mark


def held(*, nodes_open: bool = False, came: str = "", shown: Shown | None = None) -> str:
    """The mark of a job that headway holds. ``nodes_open``: its user stated no greatest number of nodes.
    ``came``: its name for all and when it was submitted, if it came from another cluster. ``shown``: the
    planned start that its begin time is."""
    return HELD + _behind(came) + _showing(shown) + (_ANY_NODES if nodes_open else "")


def shown(comment: str) -> Shown | None:
    """The planned start that a mark says to be shown; None of marks without, and of other comments."""
    found = _SHOWN.search(comment) if comment.startswith(PREFIX) else None
    return Shown(int(found[1]), int(found[2] or 0)) if found is not None else None


def showing(comment: str, planned: Shown | None) -> str:
    """The same mark with this planned start; None: without any."""
    bare = _SHOWN.sub("", comment)
    end = _ANY_NODES if bare.endswith(_ANY_NODES) else ""
    return bare.removesuffix(end) + _showing(planned) + end


def _showing(planned: Shown | None) -> str:
    return planned.text() if planned is not None else ""


def _behind(came: str) -> str:
    return f";from={came}" if came else ""


def origin(comment: str) -> str:
    """The name for all of a job that came from another cluster, with ``@`` and when it was submitted; ""
    for others."""
    found = _ORIGIN.search(comment)
    return found[1] if found is not None else ""


def of_route(mark: Mark, *, came: str = "", nodes_open: bool = False) -> str:
    """The mark of a copy or an original, as it is written. ``came``: of an original, as for :func:`held`."""
    if not all(PLACE.fullmatch(place) for place in (mark.other, mark.name or mark.other)):
        raise Unfit(f"expected a cluster and a job, found {mark.other!r} and {mark.name!r}")
    text = f"{PREFIX}{mark.kind}={mark.other}"
    if mark.kind == LEAVING:
        text += (f";run={mark.restarts}" if mark.restarts else "") + _behind(came)
    else:
        text += f";as={mark.name}@{mark.submitted}"
    return text + (_ANY_NODES if nodes_open else "")


def route(comment: str) -> Mark | None:
    """The mark of a copy or an original that a comment is."""
    if found := _COPY.fullmatch(comment):
        return Mark(found[1], found[2], found[3], int(found[4]))
    if found := _LEAVING.fullmatch(comment):
        return Mark(LEAVING, found[1], restarts=int(found[2] or 0))
    return None


def asked(begin: int, *, nodes_open: bool) -> str:
    """The mark of an array that was released, with this begin time (seconds since the epoch), so that Slurm
    looks at what it depends on."""
    return f"{ASKED}{begin}{_ANY_NODES if nodes_open else ''}"


def begin_of_asked(comment: str) -> int | None:
    """The begin time that such a mark states; None of other comments."""
    begin = comment.removeprefix(ASKED).removesuffix(_ANY_NODES)
    return int(begin) if comment.startswith(ASKED) and re.fullmatch("[0-9]{1,10}", begin) else None


def says_nodes_open(comment: str) -> bool:
    """Whether a mark says that the job's user stated no greatest number of nodes."""
    if not comment.endswith(_ANY_NODES):
        return False
    bare = _SHOWN.sub("", _ORIGIN.sub("", comment.removesuffix(_ANY_NODES)))
    return bare in (NEW, HELD) or begin_of_asked(comment) is not None or route(comment) is not None


def parse(comment: str) -> Pin | None:
    """The pin that a comment speaks of; None if it speaks of none, or is damaged."""
    if not comment.startswith(PREFIX + "pin="):
        return None
    fields: dict[str, str] = {}
    for item in comment[len(PREFIX) :].split(";"):
        key, _, value = item.partition("=")
        fields[key] = value
    try:
        least, _, most = fields.get("nodes", "0-0").partition("-")
        placement: list[tuple[str, int]] = []
        for group in filter(None, fields.get("cpus", "").split("/")):
            names, _, count = group.rpartition(":")
            placement += [(name, int(count)) for name in hostlist.expand(names)]
        nodes = hostlist.expand(fields["pin"])
        order = {name: at for at, name in enumerate(nodes)}
        return Pin(
            nodes=nodes,
            asked=hostlist.expand(fields.get("asked", "")),
            least=int(least),
            most=int(most),
            placement=tuple(sorted(placement, key=lambda pair: order.get(pair[0], len(order)))),
            restarts=int(fields.get("run", "0")),
            reserved=fields.get("resv") == "1",
            excluded=tuple(map(hostlist.expand, fields["excl"].split("|"))) if "excl" in fields else (),
            listed=tuple(filter(None, fields.get("list", "").split(","))),
            came=origin(comment),
            shown=shown(comment),
        )
    except (ValueError, KeyError):
        return None
