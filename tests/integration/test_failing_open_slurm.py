"""Failing open on a real Slurm: a daemon that is killed for good costs waiting jobs its patience at most."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from failing_open import PATIENCE, Site, site

pytestmark = pytest.mark.slurm


@pytest.fixture
def driven(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Site]:
    with site(slurm_factory, tmp_path) as made:
        yield made


def rounds(driven: Site, count: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        shown = driven.round(rng)
        print(number, shown)
        # The timer that is shipped runs each minute.
        assert max(shown.held, shown.new) <= PATIENCE + 60
    driven.timer.end()
    driven.finish()


@pytest.mark.long
def test_without_its_daemon_slurm_starts_what_waits_and_with_it_headway_leads_again(driven: Site) -> None:
    rounds(driven, 3, seed=3)
    assert any("released" in said for said in driven.timer.said)


@pytest.mark.campaign
def test_fifty_deaths_of_a_daemon(driven: Site) -> None:
    rounds(driven, 50, seed=33)
