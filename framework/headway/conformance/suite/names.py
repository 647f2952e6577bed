"""Names of jobs are only names."""

from __future__ import annotations

import pytest

from headway.conformance.site import NAMES, Site
from headway.conformance.suite.needs import Drive


class TestNames:
    @pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
    def test_are_only_names(self, site: Site, drive: Drive, name: str) -> None:
        if name not in site.names:
            pytest.skip(f"{site.name}: a job of this name is not tried there")
        driven = drive()
        other = site.submit(1)
        job = site.submit(1, name=name)
        driven.submitted(other)
        driven.submitted(job)
        driven.start(job, ((driven.nodes[0], 1),))
        driven.end(job)
        assert site.waiting() == {other}
