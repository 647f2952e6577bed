"""What commands that look at the cluster find in the journal of earlier runs, if there is one."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli.common import messages, say
from headway.errors import HeadwayError

if TYPE_CHECKING:
    from headway.config import Config


def may_have_journal(journal: str) -> bool:
    """Whether there may be a journal of this name: also in a folder that the user may not look into."""
    try:
        return "://" in journal or Path(journal).exists()
    except PermissionError:
        return True


def first_submissions(config: Config, jobs: Collection[str]) -> dict[str, float]:
    """When these jobs were submitted (absolute seconds), as far as the journal says; see
    :meth:`headway.adapter.ClusterAdapter.submitted_before`."""
    if not may_have_journal(config.journal):
        return {}
    from headway.journal import Journal

    try:
        with Journal.open(config.journal, create=False, read_only=True) as journal:
            return journal.first_submissions(jobs)
    except HeadwayError as error:
        say(f"The first submissions of requeued jobs are not known: {error}", messages(), style="yellow")
        return {}
