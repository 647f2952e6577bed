"""What a scheduler is asked between two of its steps: reports of jobs, pools, nodes, bookings and the last
cycle, and why a job waits.

Nothing here changes the scheduler, reads a file or asks a batch system. Whoever asks stands on the
scheduler's thread (:class:`headway.inquiry.inquiry.Inquiry`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.inquiry.inquiry import Inquiry
    from headway.inquiry.sentences import explain, find_job, why_not_started

__all__ = ["Inquiry", "explain", "find_job", "why_not_started"]

__getattr__ = late(
    __name__,
    {
        ".inquiry": "Inquiry",
        ".sentences": "explain find_job why_not_started",
    },
)
