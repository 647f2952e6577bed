"""``headway status``: how the daemon is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.common import (
    adapter_option,
    console,
    daemon_config_option,
    examples,
    say,
    wall_clock,
)
from headway.errors import Failure

if TYPE_CHECKING:
    from headway.service.protocol import Leadership, LetterCounts, PoolReport, Report


@click.command("status", epilog=examples("headway status -c site.yaml"))
@daemon_config_option
@adapter_option
@json_option("headway.service.protocol:Report")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool) -> None:
    """Tell how the daemon is: run, mode, queues, free processors, last cycle, problems."""
    from headway.service.protocol import Status

    report = ask_daemon(config_path, adapter_files, Status()).status
    if report is None:
        raise Failure("the daemon answers without a report")
    if as_json:
        say_json(report)
    else:
        _show(report)


def _counts(pool: PoolReport, tiers: bool) -> tuple[int, ...]:
    """The columns of a pool behind its name."""
    counts = (pool.total, pool.free, pool.queued, pool.running)
    return (*counts, pool.background) if tiers else counts


def _show(report: Report) -> None:
    known = report.leadership
    if known.role == "stand-by":
        _show_standby(known)
        return
    say(
        f"{report.cluster}: mode {report.mode}, run {report.run} since {wall_clock(report.started)}, "
        f"plugins {', '.join(report.plugins)}"
    )
    if known.role != "alone":
        say(f"{known.leader} is the {known.role} with epoch {known.epoch} since {wall_clock(known.since)}.")
    if known.trouble:
        say(f"The lease: {known.trouble}", style="yellow")
    _show_clusters(report)
    if report.last_cycle is None:
        say("No cycle yet: the cluster has not answered.")
        return
    age = max(0.0, time.time() - report.last_cycle)
    say(
        f"{report.cycles} cycles, the last {age:.0f} s ago; {report.jobs} jobs, "
        f"{report.reservations} reservations"
    )
    _show_pools(report.pools)
    power = [f"{count} {state}" for state, count in sorted(report.power.items())]
    if report.watts:
        power.append(f"{sum(report.watts.values()):.0f} W measured on {len(report.watts)} nodes")
    if power:
        say("Power: " + ", ".join(power))
    for cluster, found in report.latencies.items():
        say(f"Latency{f' of {cluster}' if cluster else ''}: {found}")
    if report.limited:
        users = ", ".join(f"{count} of {user}" for user, count in report.limited.items())
        say(f"Requests refused because there were too many: {users}")
    if text := _letters(report.letters):
        say(f"Letters to users: {text}")
    if report.problems_in_all:
        latest = "; the latest:" if report.problems else "; operators are told which."
        say(f"{report.problems_in_all} problems{latest}")
        for at, text in report.problems:
            say(f"  {wall_clock(at)} {text}")


def _show_standby(known: Leadership) -> None:
    """How a daemon is that stands by."""
    say(f"Stand-by since {wall_clock(known.since)}.")
    if known.leader:
        say(f"{known.leader} leads with epoch {known.epoch}, last heard of {known.silent or 0.0:.1f} s ago.")
    else:
        say("No leader is known.")
    if known.lag is None:
        say("Nothing of the leader's journal is known.", style="yellow")
    elif known.lag:
        say(f"What is known of the leader's journal is at most {known.lag:.1f} s old.")
    else:
        say("The journal is shared.")
    if known.trouble:
        say(known.trouble, style="yellow")


def _letters(counts: LetterCounts) -> str:
    """What became of letters; "" if there were none."""
    words = {
        "delivered": counts.delivered, "failed": counts.failed, "refused": counts.refused,
        "waiting": counts.waiting,
    }  # fmt: skip
    return ", ".join(f"{count} {word}" for word, count in words.items() if count)


def _show_clusters(report: Report) -> None:
    """What is wrong with the clusters: outages, oddities, starts that are not confirmed."""
    for outage in report.outages:
        since = wall_clock(outage.since)
        say(f"{outage.cluster} has not answered since {since}: {outage.message}", style="red")
    for odd in report.oddities:
        latest = f" ({odd.detail})" if odd.detail else ""
        say(f"{odd.cluster}: {odd.what}: {odd.count}, last {wall_clock(odd.last)}{latest}", style="yellow")
    for wait in report.starts_waiting:
        say(f"{wait.cluster}: {wait.sentence}; their processors stay reserved.", style="yellow")


def _show_pools(pools: Sequence[PoolReport]) -> None:
    from rich.table import Table

    tiers = any(pool.background for pool in pools)
    table = Table("pool", "processors", "free", "queued", "running", *(["background"] if tiers else []))
    for column in table.columns[1:]:
        column.justify = "right"
    for pool in pools:
        table.add_row(pool.name, *(str(n) for n in _counts(pool, tiers)))
    console().print(table)
