"""The conformance suite as a pytest plugin: what every adapter must show, on any cluster.

An adapter's author writes a :class:`~headway.conformance.site.Site` and a test file::

    from headway.conformance.suite import *

    @pytest.fixture(scope="session")
    def site():
        made = MySite()
        yield made
        made.close()

and runs ``pytest -p headway.conformance`` (or has ``pytest_plugins = ["headway.conformance"]`` in the
``conftest.py`` beside ``pyproject.toml``). The plugin has one fixture, ``drive``, and no hook that acts on
other tests.

pytest does not rewrite this module, which asserts nothing (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("headway.conformance.driven", "headway.conformance.suite")

from headway.conformance.driven import Driven  # noqa: E402 (its assertions are rewritten)
from headway.conformance.site import CAN, NAMES, PACE, Site, Wanted  # noqa: E402

__all__ = ["CAN", "NAMES", "PACE", "Driven", "Site", "Wanted"]


@pytest.fixture
def drive(site: Site) -> Iterator[Callable[..., Driven]]:
    """Begin to drive the cluster: ``drive(read_only=True)``. What a test leaves there is removed."""
    if unknown := sorted(site.can - CAN.keys()):
        pytest.fail(f"site {site.name}: can: expected words of {', '.join(CAN)}; found {', '.join(unknown)}")
    if not hasattr(site, "mine"):
        site.clean()
    opened: list[Driven] = []

    def begin(**options: Any) -> Driven:
        opened.append(Driven(site, **options))
        return opened[-1]

    yield begin
    for driven in opened:
        driven.adapter.close()
    site.clean()
