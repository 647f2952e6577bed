"""What ``headway import`` prints with ``--json``."""

from __future__ import annotations

import msgspec


class RemarkReport(msgspec.Struct, frozen=True):
    """A setting that is not carried over as it was."""

    text: str
    #: Its line could not be read.
    broken: bool


class ImportReport(msgspec.Struct, frozen=True):
    """A site's configuration, and what of its old files is not in it."""

    #: The configuration, as YAML.
    configuration: str
    #: The plugins that it enables.
    plugins: int
    remarks: tuple[RemarkReport, ...]
    #: Where it was written; None: nowhere.
    file: str | None = None
