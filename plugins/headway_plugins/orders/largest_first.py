"""Serve the most processors first.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, section 5: LJF, "largest job first".
(The text before the paper's section 7 sorts the other way round; the name decides.)

Jobs that are equal in this are served by submission time, then by order of arrival.
"""

from __future__ import annotations

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Study, Traits
from headway.state import Job


class LargestFirst(Plugin):
    """The most processors first."""

    traits = Traits(study=Study(estimates=False))

    @hookimpl
    def queue_key(self, job: Job) -> tuple[int]:
        return (-job.processors,)
