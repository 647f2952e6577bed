"""Skipping what a site cannot be made to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.conformance.driven import Driven
from headway.conformance.site import CAN, Site

#: The fixture ``drive``.
Drive = Callable[..., Driven]


def need(site: Site, *words: str) -> None:
    """Skip the test unless all of this can be done to the site (words of :data:`CAN`)."""
    for word in words:
        if word not in site.can:
            pytest.skip(f"{site.name}: not in the site's `can`: {word} ({CAN[word]})")
