"""A scheduler as a configuration describes it, beside what makes others of it: for tests of what-ifs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from waiting import HANG

from headway.config import parse_config
from headway.daemon.other_policy import ConfiguredPolicies
from headway.decisions import Start
from headway.events import Event, JobEnded, JobStarted
from headway.inquiry.course import Course, follow, waiting_jobs
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import WhatIfReport
from headway.model import ClusterDescription
from headway.plugins import Catalogue, Plugins
from headway.resources.profile import next_after
from headway.scheduler import Scheduler
from headway.scheduler.step import plain_clock
from headway.service.peer import Peer
from headway.service.protocol import Reply, WhatIf
from headway.service.what_if import WhatIfs
from headway.state.retold import told_anew

ROOT = Peer("root", operator=True)
ABLE = frozenset({Start})


class Site:
    """A scheduler, and a cluster that does what it decides; each job runs as long as it says."""

    def __init__(
        self, cluster: ClusterDescription, plugins: str, *, files: Sequence[Path] = (), monitor: bool = False,
        more: str = "",
    ) -> None:  # fmt: skip
        """``plugins``: as in a configuration, such as ``[easy, first-fit]``; ``more`` of it; ``files`` with
        plugins."""
        config = parse_config(f"plugins: {plugins}\n{more}", "site.yaml")
        catalogue = Catalogue(files)
        configs = config.plugin_configs()
        loaded = Plugins.load(configs, catalogue, ABLE)
        self.scheduler = Scheduler(cluster, loaded, capabilities=ABLE, monitor=monitor, cycle=config.cycle)
        self.policies = ConfiguredPolicies(config, catalogue, configs, loaded, ABLE, plain_clock)
        self.now = 0.0
        self.starts: dict[str, float] = {}
        self.step(0.0)

    def step(self, now: float, *events: Event) -> None:
        self.now = now
        made = self.scheduler.step(now, list(events))
        starts = [] if self.scheduler.monitors else [one for one in made if isinstance(one, Start)]
        self.starts.update((one.job_id, now) for one in starts)
        if starts:
            self.step(now, *(JobStarted(now, one.job_id, one.placement, pool=one.pool) for one in starts))

    def pass_until(self, end: float) -> None:
        """Let time pass; each job ends as it is planned to."""
        while (now := self._next()) is not None and now <= end:
            self._go_to(now)
        self.step(end)

    def _next(self) -> float | None:
        """When a job ends as planned, or the scheduler has something to do; None: never."""
        ends = [domain.running[0][0] for domain in self.scheduler.state.domains.values() if domain.running]
        due = self.scheduler.next_wakeup()
        moments = [*ends, *([due] if due is not None else [])]
        return max(min(moments), next_after(self.now)) if moments else None

    def _go_to(self, now: float) -> None:
        running = [entry for domain in self.scheduler.state.domains.values() for entry in domain.running]
        self.step(now, *(JobEnded(now, entry[3].id) for entry in running if entry[0] <= now))

    def run_until_they_start(self, jobs: Iterable[str]) -> dict[str, float]:
        """The starts of these jobs, if nothing else happens."""
        left = [job for job in jobs if job not in self.starts]
        while any(job not in self.starts for job in left) and (now := self._next()) is not None:
            self._go_to(now)
        return {job: self.starts[job] for job in left if job in self.starts}

    # What would be, in this process: the site is used up.

    def course(self, policy: str | None = None, **options: Any) -> Course:
        """The course under a policy; None: as it is."""
        known = self.scheduler
        jobs = [job.id for job in waiting_jobs(Inquiry(known))]
        made, events = known, []
        if policy is not None:
            made = self.policies.scheduler(known, policy, options)
            events = told_anew(known.state)
        found = Course()
        follow(made, self.now, events, jobs, found, time.monotonic() + HANG)
        return found


def asked(what_ifs: WhatIfs, site: Site, wanted: WhatIf, peer: Peer = ROOT) -> Reply:
    future: Future[Reply] = Future()
    what_ifs.ask(wanted, peer, site.scheduler, future)
    return future.result(2 * HANG)


def found(what_ifs: WhatIfs, site: Site, policy: str, **more: Any) -> WhatIfReport:
    reply = asked(what_ifs, site, WhatIf(policy, **more))
    assert isinstance(reply.found, WhatIfReport), reply
    return reply.found
