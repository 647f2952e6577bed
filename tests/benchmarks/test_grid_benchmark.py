"""What a grid site's workload costs: a million jobs, in seconds of the processor."""

from __future__ import annotations

import time

import numpy as np
import pytest

from headway_plugins.grid.login_logout import LoginLogoutModel, LoginLogoutOptions

pytestmark = pytest.mark.benchmark


def test_a_million_jobs_of_login_logout():
    begun = time.process_time()
    workload = LoginLogoutModel().generate(np.random.default_rng(1), LoginLogoutOptions(jobs=1_000_000))
    spent = time.process_time() - begun
    print(f"login-logout: {len(workload.jobs):,} jobs in {spent:.2f} s")
    assert len(workload.jobs) == 1_000_000
    assert spent < 20
