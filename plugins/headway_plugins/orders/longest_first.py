"""Serve the longest estimate first.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, section 5: MaxET, "maximum estimated execution time".
(The paper's sentence on MinET and MaxET has them the wrong way round; the names decide.)

Jobs that are equal in this are served by submission time, then by order of arrival.
"""

from __future__ import annotations

from headway.hookspecs import Plugin, hookimpl
from headway.state import Job


class LongestFirst(Plugin):
    """The longest estimate first."""

    @hookimpl
    def queue_key(self, job: Job) -> tuple[float]:
        return (-job.estimate,)
