"""The state as a whole: a table of contents of the parts that its files hold."""

from __future__ import annotations

from collections.abc import Mapping

from headway.model import ClusterDescription
from headway.state import (
    barriers,
    belonging,
    bundles,
    capacity,
    domains,
    expectations,
    fold,
    foresight,
    frequency,
    guard,
    kinds,
    lending,
    licences,
    moves,
    occupation,
    pool_share,
    queues,
    reasons,
    reservations,
    silence,
    waiting,
    wakeups,
    watchers,
)
from headway.state.facts import Facts


class State(Facts):
    """All that the scheduler knows about one cluster.

    The methods are the functions of the package's files that callers outside may use: what they do stands
    there.
    """

    def __init__(self, cluster: ClusterDescription, tiers: Mapping[str, int] | None = None) -> None:
        super().__init__(cluster, tiers)
        for node in cluster.nodes:
            self.nodes.put(node)
        domains.regroup(self)
        capacity.recount(self, self.pools)
        capacity.tell_unknown_tiers(self)
        if cluster.licences:
            licences.begin_counting(self)
        for reservation in cluster.reservations:
            reservations.put_reservation(self, reservation)
        self.described.clear()

    # What happened.
    handlers = fold.HANDLERS
    apply = fold.apply
    conclude = capacity.conclude
    advance = waiting.advance
    overdue = expectations.overdue
    note_outlived = expectations.note_outlived

    # Questions.
    why_waiting = reasons.why_waiting
    next_wakeup = expectations.next_wakeup
    profile = reservations.profile
    pool_profile = reservations.pool_profile
    kept_for = belonging.kept_for
    confining = belonging.confining
    inside = belonging.inside
    kept = reservations.kept
    size = reservations.size
    frequencies = frequency.frequencies
    running_in = pool_share.running_in
    free_in = pool_share.free_in
    entries_in = pool_share.entries_in
    held_in = pool_share.held_in
    most_in = pool_share.most_in
    most_of = pool_share.most_of
    watch_tenants = moves.watch_tenants
    silent_since = silence.silent_since
    why_not_resumed = lending.why_not_resumed
    remaining = lending.remaining

    # What was decided.
    begin = guard.begin
    undo = guard.undo
    carry = moves.carry
    guard_subjob = bundles.guard_subjob
    moved_back = moves.moved_back
    lend = lending.lend
    sweep = queues.sweep
    rekey = queues.rekey
    outdate_keys = queues.outdate_keys
    outdate_kinds = kinds.outdate_kinds
    is_barred = barriers.is_barred
    bar_found = barriers.bar_found
    ask_again = barriers.ask_again
    bar_queued = barriers.bar_queued
    bar = barriers.bar
    lifted = barriers.lifted
    keep_free = reservations.put_reservation
    keep_no_more = reservations.drop_reservation
    watch = watchers.watch
    take_back = foresight.take_back
    set_expected_end = occupation.set_expected_end
    expect = expectations.expect
    set_aside = waiting.set_aside
    wake_at = wakeups.wake_at
    remember_frequencies = frequency.remember_frequencies
