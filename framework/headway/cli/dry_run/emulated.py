"""A dry run of a trace or of a model's jobs, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.cli.common import say
from headway.cli.dry_run.told import report

if TYPE_CHECKING:
    from headway.dry_run.asked import Asked
    from headway.dry_run.site import Site


def run_workload(asked: Asked, site: Site) -> None:
    """Run the jobs that were asked for, and say how it went."""
    from headway.cli.screen import job_progress
    from headway.dry_run.emulated import emulated, in_short
    from headway.dry_run.written import Finished
    from headway.experiment.answers import refuse_without_campaign
    from headway.plugins.failures import refuse_failed

    done = emulated(asked, site, job_progress)
    chained = in_short(done.result) if done.opened is not None else None
    finished = Finished.of(done.result, site, done.replayed, done.judged)
    report(finished, asked.outputs)
    if done.opened is not None:
        say(f"feedback: {done.about['feedback']}; with it {chained}; open replay {done.opened}")
    if asked.chance.draws > 1:
        say(f"draws: {done.about['draws']}")
    if asked.outputs.journal_path:
        say(f"journal: {asked.outputs.journal_path} (`headway replay {asked.outputs.journal_path}`)")
    if asked.method.strict_method and finished.trusted is not None:
        refuse_without_campaign(finished.trusted.judged, done.name)
    refuse_failed(done.result.failures)
