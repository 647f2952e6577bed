"""A part of the HTML report that a plugin adds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A part of the report that a plugin adds.

    ``html`` is put into the page as it is: the plugin has to escape what users wrote.
    """

    title: str
    html: str
