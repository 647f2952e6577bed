"""Slurm's job states -> ours."""

from __future__ import annotations

from typing import Any

from headway_adapters.slurm import values

#: Base job state -> our state and outcome.
JOB_STATES: dict[str, tuple[str, str]] = {
    "PENDING": ("pending", ""),
    "CONFIGURING": ("starting", ""),
    "RUNNING": ("running", ""),
    "STOPPED": ("running", ""),
    "SUSPENDED": ("suspended", ""),
    "COMPLETED": ("ended", "completed"),
    "CANCELLED": ("ended", "cancelled"),
    "FAILED": ("ended", "failed"),
    "TIMEOUT": ("ended", "timed out"),
    "NODE_FAIL": ("ended", "node failure"),
    "PREEMPTED": ("ended", "preempted"),
    "BOOT_FAIL": ("ended", "failed"),
    "DEADLINE": ("ended", "timed out"),
    "OUT_OF_MEMORY": ("ended", "failed"),
    "REVOKED": ("ended", "cancelled"),
}
#: Flags that may stand beside or in the place of a base state, and what they mean for us.
_STATE_FLAGS: dict[str, str] = {
    "CONFIGURING": "starting",
    "COMPLETING": "running",
    "STAGE_OUT": "running",
    "RESIZING": "running",
    "SIGNALING": "running",
    "STOPPED": "running",
    "REQUEUED": "pending",
    "REQUEUE_HOLD": "pending",
    "REQUEUE_FED": "pending",
    "SPECIAL_EXIT": "pending",
    "RESV_DEL_HOLD": "pending",
    "LAUNCH_FAILED": "",
    "RECONFIG_FAIL": "",
    "EXPEDITING": "",
    "POWER_UP_NODE": "",
    "UPDATE_DB": "",
}


def job_state(raw: Any, nodes: Any, notes: set[str]) -> tuple[str, str]:
    """Our state and outcome of a job in Slurm's state ``raw`` that has ``nodes``."""
    if isinstance(raw, str) and (known := JOB_STATES.get(raw)) is not None:
        return known
    state = outcome = ""
    flagged = ""
    for word in values.words(raw):
        if word in _STATE_FLAGS:
            flagged = flagged or _STATE_FLAGS[word]
        elif word in JOB_STATES:
            state, outcome = JOB_STATES[word]
        else:
            notes.add(f"unknown job state {word!r}; such a job is left as it is")
    if flagged == "running" and state == "pending":
        # Requeued, and still on its nodes: pending for Slurm, but the nodes are not free yet.
        return "running", ""
    if flagged in ("starting", "running"):
        return flagged, ""
    if flagged == "pending":
        return "pending", ""
    if not state:
        # A state that we do not know: the job keeps what it has; else it is not started.
        return ("running", "") if values.text(nodes) else ("pending", "")
    return state, outcome
