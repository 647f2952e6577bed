"""A Slurm site's policy: accounts, QOS and weights, asked for where plugins go by them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence

import msgspec

from headway import events as ev
from headway.errors import UserError
from headway.model import SitePolicy
from headway_adapters.polling.client import Unanswered
from headway_adapters.slurm import reader
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.world import World
from headway_adapters.transport import Result

#: What ``sacctmgr`` complains of when it has lost slurmdbd, and not of a site's own oddities.
_LOST = re.compile(
    r"error:.*(?:dbd|persist|connect|database|communicat|timed? ?out|socket|pipe|poll|unpack|query)",
    re.IGNORECASE,
)


class Policy:
    """The policy as it was read last. :meth:`ask` is called on the looking thread."""

    def __init__(self, client: SlurmClient, interval: float) -> None:
        """``interval``: seconds between two questions."""
        self._client = client
        self._interval = interval
        #: When it is asked for again (monotonic clock); never, until it is needed.
        self._due = math.inf
        #: As it was read last, and as it was when the engine was told last.
        self._read: SitePolicy | None = None
        self._told: SitePolicy | None = None

    def need(self) -> None:
        """Plugins go by it: ask at the next look."""
        self._due = -math.inf

    def news(self, policy: SitePolicy | None, now: float) -> Iterable[ev.Event]:
        """The policy of a look, if it is another than was told."""
        before, self._told = self._told, policy
        if policy is not None and policy is not before and not _same(policy, before):
            yield ev.SitePolicyChanged(now, policy)

    def ask(self, world: World, partitions: str, notes: set[str]) -> SitePolicy | None:
        """The policy, asked for anew if it is time to; the first time it must come."""
        if time.monotonic() < self._due:
            return self._read
        config, associations, users, qos, usage, spent = self._client.run_many(_questions(world))
        for result in (config, associations, users, qos):
            # One that loses slurmdbd halfway prints what it has, limits left out, complains and exits with 0.
            if not result.ok or _LOST.search(result.stderr):
                return self._as_it_was(result, notes)
        if not usage.ok:
            notes.add(f"the usage until now is not known: sshare: {usage.complaint()}")
        if not spent.ok:
            notes.add(
                "the use of GrpWall and of QOS' limits until now is not known: scontrol show assoc_mgr:"
                f" {spent.complaint()}"
            )
        self._due = time.monotonic() + self._interval
        self._read = reader.read_policy(
            reader.config(config.text),
            partitions,
            associations.text,
            users.text,
            qos.text,
            usage.text if usage.ok else "",
            notes,
            spent.text if spent.ok else "",
        )
        return self._read

    def _as_it_was(self, failed: Result, notes: set[str]) -> SitePolicy:
        command = " ".join(failed.argv[:4])
        if self._read is None:
            raise Unanswered(f"{command}: {failed.complaint()}")
        notes.add(f"the site's policy stays as it was: {command}: {failed.complaint()}")
        return self._read


def _questions(world: World) -> Sequence[Sequence[str]]:
    """Commands: the configuration, associations, users, QOS, usage, and what was used of limits.

    Raises :class:`UserError` where there is nothing to ask."""
    storage = world.config.get("AccountingStorageType", "")
    if not storage.endswith("slurmdbd"):
        raise UserError(
            "plugins: from-slurm: expected a Slurm with AccountingStorageType=accounting_storage/"
            f"slurmdbd, found {storage or 'none'}"
        )
    shown = ("sacctmgr", "-n", "-P", "show")
    return [
        ("scontrol", "show", "config"),
        (*shown, "assoc", f"cluster={world.name}", f"format={','.join(reader.ASSOCIATIONS)}"),
        (*shown, "user", f"format={','.join(reader.USERS)}"),
        (*shown, "qos", f"format={','.join(reader.QOS)}"),
        ("sshare", "-a", "-n", "-P", "-o", ",".join(reader.USAGE)),
        ("scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos"),
    ]


def _same(one: SitePolicy, other: SitePolicy | None) -> bool:
    """Whether nothing is otherwise but what was used, which changes all the time."""
    if other is None or one == other:
        return one == other
    unused = [
        tuple(msgspec.structs.replace(a, usage=0.0, processor_minutes=0.0) for a in p.associations)
        for p in (one, other)
    ]
    return unused[0] == unused[1] and msgspec.structs.replace(
        one, associations=(), used={}
    ) == msgspec.structs.replace(other, associations=(), used={})
