"""What is not among an adapter's capabilities is refused, and the refusal says so."""

from __future__ import annotations

import re

from headway import decisions as d
from headway.conformance.site import Site
from headway.conformance.suite.needs import Drive
from headway.model import Reservation

#: What a refusal of each must speak of.
ABOUT = {
    d.Checkpoint: "checkpoint", d.Migrate: "migrate", d.SwapTiers: "swaptiers", d.SetFrequency: "frequenc",
    d.PowerDown: "power|sleep", d.PowerUp: "power|sleep", d.Reserve: "reserv", d.Unreserve: "reserv",
    d.Resize: "resize", d.Suspend: "suspend", d.SubmitSubjob: "submitsubjob",
}  # fmt: skip


class TestCapabilities:
    def test_what_is_not_among_them_is_refused_and_said(self, site: Site, drive: Drive) -> None:
        driven = drive()
        job = site.submit(1)
        described = driven.submitted(job).job
        node = driven.nodes[0]
        later = Reservation("r", site.now() + 3600, site.now() + 7200, nodes=(node,))
        wishes: list[d.Decision] = [
            d.Checkpoint(job), d.Migrate(job, ((node, 1),)), d.SwapTiers(job), d.SetFrequency(job, 1e9),
            d.PowerDown((node,)), d.PowerUp((node,)), d.Reserve(later), d.Unreserve("r"), d.Resize(job, 2),
            d.Suspend(job), d.SubmitSubjob(job, described),
        ]  # fmt: skip
        for wish in wishes:
            if type(wish) not in driven.adapter.capabilities:
                (outcome,) = driven.apply(wish)
                assert not outcome.accepted
                assert re.search(ABOUT[type(wish)], outcome.message.lower()), outcome.message
        assert job in site.waiting()
