"""Torque's listings, which are XML (``qstat -x``, ``pbsnodes -x``) -> records. Pure.

Each record is read by itself: a ``<`` within a value is written ``&lt;``, so no user's text opens or closes
one, and a record that is no XML because of something in it (control characters of a job's name) is first
mended and then, if that does not help, left out. What it is about costs a look; the others cost nothing.
A document type is never part of a listing and is how XML is made to grow: such a document is refused.

What cannot be understood at all raises :class:`headway_adapters.pbs.documents.Malformed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from headway_adapters.pbs.documents import JobRecord, Malformed, NodeRecord, job_record, node_record

_BEGINS = re.compile(r"(<\?xml[^<>]*\?>\s*)?<Data>")
#: What XML 1.0 does not take, and "&" that begins nothing.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BARE = re.compile(r"&(?!(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


def jobs(data: bytes) -> dict[str, JobRecord]:
    """``qstat -x``: job id -> record."""
    return {job_id: job_record(record) for job_id, record in _entries(data, "Job", "Job_Id")}


def nodes(data: bytes) -> dict[str, NodeRecord]:
    """``pbsnodes -x``: node -> record."""
    return {name: node_record(record) for name, record in _entries(data, "Node", "name")}


def _entries(data: bytes, kind: str, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    text = data.decode("utf-8", errors="replace").strip()
    if not text:
        return
    if _BEGINS.match(text) is None or not text.endswith("</Data>"):
        raise Malformed(f"expected a whole listing in XML, it begins {data[:60]!r}")
    for match in re.finditer(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL):
        record = _entry(match.group(0))
        name = record.get(key)
        if isinstance(name, str) and name:
            yield name, record


def _entry(text: str) -> dict[str, Any]:
    """One record; empty if it cannot be read."""
    record: dict[str, Any] = {}
    try:
        root = ElementTree.fromstring(_BARE.sub("&amp;", _UNFIT.sub("?", text)))
    except (ElementTree.ParseError, ValueError):
        return record
    for child in root:
        if len(child):
            record.setdefault(child.tag, {part.tag: part.text or "" for part in child})
        else:
            record.setdefault(child.tag, child.text or "")
    return record
