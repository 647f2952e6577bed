"""The fold: which function handles which event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headway import events as ev
from headway.state import capacity, copies, frequency, licences, lifecycle, reservations, running, silence
from headway.state.facts import Facts


def nothing(state: Facts, event: ev.Event) -> None:
    """News that only plugins care about."""


def policy_changed(state: Facts, event: ev.SitePolicyChanged) -> None:
    """The batch system says what its site's policy is. Plugins go by it; the state remembers it."""
    state.site_policy = event.policy


#: What each event does to the state.
HANDLERS: Mapping[type, Callable[[Any, Any], None]] = {
    ev.JobSubmitted: lifecycle.submitted,
    ev.JobReleasing: lifecycle.releasing,
    ev.JobStarted: lifecycle.started,
    ev.JobRequeued: lifecycle.requeued,
    ev.JobEnded: lifecycle.ended,
    ev.JobHeld: lifecycle.held,
    ev.JobReleased: lifecycle.released,
    ev.JobChanged: lifecycle.job_changed,
    ev.DecisionFailed: lifecycle.decision_failed,
    ev.JobSuspended: running.suspended,
    ev.JobResumed: running.resumed,
    ev.JobLeaving: running.leaving,
    ev.JobMigrated: running.migrated,
    ev.JobTierChanged: running.tier_changed,
    ev.JobPaceChanged: running.pace_changed,
    ev.JobUsageMeasured: running.usage_measured,
    ev.JobFrequencyChanged: frequency.frequency_changed,
    ev.PoolChanged: capacity.pool_changed,
    ev.NodeUp: capacity.node_up,
    ev.NodeDown: capacity.node_down,
    ev.NodePowerChanged: capacity.power_changed,
    ev.LicencesChanged: licences.licences_changed,
    ev.ReservationMade: reservations.reservation_made,
    ev.ReservationStarted: reservations.reservation_started,
    ev.ReservationEnded: reservations.reservation_ended,
    ev.JobRouted: lifecycle.routed,
    ev.DatasetCopying: copies.copying,
    ev.DatasetCopied: copies.copied,
    ev.DatasetLost: copies.lost,
    ev.CopyFailed: copies.copy_failed,
    ev.ClusterSilent: silence.fell_silent,
    ev.ClusterAnswers: silence.answers,
    ev.JobCheckpointed: nothing,
    ev.ElasticCommandReceived: nothing,
    ev.ReservationRequested: nothing,
    ev.ReservationReturned: nothing,
    ev.PluginAsked: nothing,
    ev.NodeFrequencyChanged: nothing,
    ev.PartitionChanged: nothing,
    ev.SitePolicyChanged: policy_changed,
    ev.Tick: nothing,
}


def apply(state: Facts, events: Iterable[ev.Event]) -> None:
    """Fold events in, in the order given."""
    for event in events:
        HANDLERS[type(event)](state, event)
    capacity.conclude(state)
