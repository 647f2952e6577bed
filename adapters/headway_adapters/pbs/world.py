"""What is learned about a PBS cluster once: its server, its queues, and how its times are written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headway.errors import UserError
from headway_adapters.pbs import checks, cluster, documents, values
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.listings import Listings
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.pbs.placement_sets import group_keys
from headway_adapters.pbs.settings import Settings
from headway_adapters.polling.client import Unanswered


@dataclass(frozen=True)
class World:
    """What is learned about the cluster once."""

    name: str
    site: cluster.Site
    torque: bool
    listings: Listings
    settings: Settings
    #: Ended jobs can be asked for.
    history: bool
    #: Resources by whose values vnodes are grouped.
    group_keys: tuple[str, ...] = ()


def learn(client: PbsClient, options: PbsOptions, words: frozenset[str]) -> World:
    """Ask PBS. ``words``: attributes of jobs that users can say.

    Raises :class:`headway.errors.Failure` when it does not answer, :class:`UserError` for options that do not
    fit it.
    """
    (version,) = client.run_many([("qstat", "--version")])
    is_torque = checks.flavour_of(version, options) == "torque"
    listings = Listings(client, torque=is_torque)
    server_out, queues_out = client.look(
        [("qstat", "-B", "-f", *listings.form), ("qstat", "-Q", "-f", *listings.form)]
    )
    servers = listings.objects(server_out, "Server", set())
    if not servers:
        raise Unanswered("qstat -B: lists no server")
    name, server = next(iter(servers.items()))
    queues = cluster.read_queues(listings.objects(queues_out, "Queue", set()))
    _queues_exist(options, sorted(name for name, queue in queues.items() if not queue.of_reservation))
    return World(
        name=name,
        site=cluster.Site(
            words=words,
            managed=options.queues,
            array_limit=options.array_limit,
            unlimited_walltime=options.unlimited_walltime,
            zone=0.0 if is_torque else _zone(client),
            beside_scheduler=options.reservations,
            group_keys=group_keys(server),
        ),
        torque=is_torque,
        listings=listings,
        settings=Settings(client, listings, poll_interval=options.poll_interval, licences=not is_torque),
        group_keys=group_keys(server),
        history=not is_torque and values.truth(server.get("job_history_enable")),
    )


def _queues_exist(options: PbsOptions, ours: Collection[str]) -> None:
    for queue in options.queues:
        if queue not in ours:
            known = ", ".join(ours) or "none"
            raise UserError(f"cluster.options.queues: PBS has no execution queue {queue!r}. Known: {known}.")


def _zone(client: PbsClient) -> float:
    """Seconds by which the times that PBS writes are ahead of UTC.

    Its commands run with TZ=UTC and write in their own zone; where something between us and them
    does not pass that on, a vnode's last change, which JSON states in seconds and the text form
    in words, tells.
    """
    as_json, as_text = client.run_many([("pbsnodes", "-av", "-F", "json"), ("pbsnodes", "-av")])
    try:
        if as_json.ok and as_text.ok:
            texts = documents.nodes_text(as_text.stdout)
            for name, record in documents.nodes_json(as_json.stdout).items():
                exact = record.last_state_change_time
                known = texts.get(name)
                written = values.when(known.last_state_change_time) if known else None
                if isinstance(exact, (int, float)) and written and abs(written - exact) < 86400:
                    return round((written - exact) / 900) * 900.0
    except documents.Malformed:
        return 0.0
    return 0.0
