"""What administrators alone write: vnodes, queues and the server, in JSON and in the text form. Pure.

Jobs are read from other forms (:mod:`headway_adapters.pbs.dsv`, :mod:`headway_adapters.pbs.torque`), since
users write into them; the records of all are here.

JSON is mended where a comment holds a control character or bytes that are no UTF-8; for the rest the
reader asks for the text form (``pbsnodes -av`` without ``-F json``), where lines that begin with a tab
go on with the value before.

What cannot be understood raises :class:`headway.errors.Failure`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from headway.errors import Failure


class Variables(msgspec.Struct, gc=False):
    """The only variable of a job's environment that means something to headway."""

    HEADWAY: Any = None


class JobRecord(msgspec.Struct, gc=False):
    """The attributes of a job that we read; everything may be missing, of any form."""

    Job_Name: Any = None
    Job_Owner: Any = None
    Account_Name: Any = None
    Execution_Time: Any = None
    Exit_status: Any = None
    Hold_Types: Any = None
    Priority: Any = None
    Resource_List: Any = None
    Variable_List: Variables | str | None = None
    array: Any = None
    comment: Any = None
    comp_time: Any = None
    ctime: Any = None
    depend: Any = None
    egroup: Any = None
    etime: Any = None
    euser: Any = None
    exec_host: Any = None
    exec_vnode: Any = None
    exit_status: Any = None
    job_state: Any = None
    max_run_subjobs: Any = None
    mtime: Any = None
    obittime: Any = None
    qtime: Any = None
    queue: Any = None
    resources_used: Any = None
    run_count: Any = None
    schedselect: Any = None
    start_count: Any = None
    start_time: Any = None
    stime: Any = None
    substate: Any = None


class NodeRecord(msgspec.Struct, gc=False):
    """The attributes of a vnode, or of a node of Torque's, that we read."""

    Mom: Any = None
    comment: Any = None
    gpus: Any = None
    last_state_change_time: Any = None
    note: Any = None
    np: Any = None
    ntype: Any = None
    properties: Any = None
    queue: Any = None
    resources_assigned: Any = None
    resources_available: Any = None
    resv: Any = None
    sharing: Any = None
    state: Any = None
    status: Any = None


class _NodeListing(msgspec.Struct, gc=False):
    nodes: dict[str, NodeRecord] = msgspec.field(default_factory=dict)
    timestamp: Any = None
    pbs_server: Any = None


class Malformed(Failure):
    """A listing that came whole but is not in the form that it should have."""


_JOB_FIELDS = frozenset(JobRecord.__struct_fields__)
_NODE_FIELDS = frozenset(NodeRecord.__struct_fields__)


# ---------------------------------------------------------------------- JSON


def nodes_json(data: bytes) -> dict[str, NodeRecord]:
    """``pbsnodes -av -F json``: vnode -> record."""
    return _decode(data, _NodeListing, "pbsnodes").nodes


def objects_json(data: bytes, kind: str) -> dict[str, dict[str, Any]]:
    """``qstat -Q -f -F json`` (kind "Queue") and ``qstat -B -f -F json`` (kind "Server")."""
    document = _decode(data, dict[str, Any], "qstat")
    found = document.get(kind, {})
    if not isinstance(found, dict):
        raise Malformed(f"qstat: {kind} is no mapping")
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def timestamp_json(data: bytes) -> float | None:
    """The time at which a JSON listing was made, absolute seconds."""
    value = _decode(data, dict[str, Any], "qstat").get("timestamp")
    return float(value) if isinstance(value, (int, float)) else None


def _decode(data: bytes, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Valid but of another shape is not worth a second try, yet it is rare enough for one.
        first = error
    if not data.lstrip().startswith(b"{"):
        raise Malformed(f"{what}: expected JSON, it begins {data[:60]!r}")
    try:
        document = json.loads(data.decode("utf-8", errors="replace"), strict=False)
        return msgspec.convert(_plain(document), kind)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise Malformed(f"{what}: not the expected JSON ({first})") from error


def _plain(document: Any) -> Any:
    """A document without the null members that stand for nothing, and without halves of characters
    (``\\ud800``), which nothing could write down again."""
    if isinstance(document, dict):
        return {_plain(key): _plain(value) for key, value in document.items() if value is not None}
    return document.encode("utf-8", "replace").decode() if isinstance(document, str) else document


# ---------------------------------------------------------------------- text

_ATTRIBUTE = re.compile(r"\s{1,8}([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_-]+))? = (.*)", re.DOTALL)


def objects_text(text: str, kind: str) -> dict[str, dict[str, Any]]:
    """``qstat -Q -f`` (kind "Queue") and ``qstat -B -f`` (kind "Server")."""
    head = re.compile(rf"{kind}: (\S+)")
    return _records(text, head)


def nodes_text(data: bytes) -> dict[str, NodeRecord]:
    """``pbsnodes -av`` and ``pbsnodes -a``: vnode -> record. A listing that was cut is refused."""
    if data.strip() and not data.endswith(b"\n\n"):
        raise Malformed("pbsnodes: the listing ends in the middle of a vnode")
    text = data.decode("utf-8", errors="replace")
    found = _records(text, re.compile(r"([A-Za-z0-9][^\s]*)"))
    return {name: node_record(record) for name, record in found.items()}


def _records(text: str, head: re.Pattern[str]) -> dict[str, dict[str, Any]]:
    """Records of ``name = value`` lines under heads. What stands first counts, so that no value that
    a user typed with a line break in it can change an attribute before it."""
    found: dict[str, dict[str, Any]] = {}
    record: dict[str, Any] | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("\t") and lines:
            lines.append(line[1:])
            continue
        if lines and record is not None:
            _put(record, "".join(lines))
        lines = []
        match = head.fullmatch(line.rstrip())
        if match is not None:
            record = found.setdefault(match.group(1), {})
        elif line.startswith(" "):
            lines = [line]
    return found


def _put(record: dict[str, Any], line: str) -> None:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        return
    name, part, value = match.groups()
    if part is None:
        record.setdefault(name, value)
        return
    within = record.setdefault(name, {})
    if isinstance(within, dict):
        within.setdefault(part, value)


def job_record(record: Mapping[str, Any]) -> JobRecord:
    """A job's record from its attributes as they were written."""
    fields = {name: value for name, value in record.items() if name in _JOB_FIELDS}
    listed = fields.get("Variable_List")
    if listed is not None:
        fields["Variable_List"] = Variables(_variable(listed, "HEADWAY"))
    return JobRecord(**fields)


def _variable(listed: Any, name: str) -> str | None:
    """One variable of ``A=b,C=d``; commas within a value have a backslash before them."""
    if isinstance(listed, Mapping):
        value = listed.get(name)
        return value if isinstance(value, str) else None
    for entry in re.split(r"(?<!\\),", listed if isinstance(listed, str) else ""):
        key, equals, value = entry.partition("=")
        if equals and key.strip() == name:
            return value.replace("\\,", ",")
    return None


def node_record(record: Mapping[str, Any]) -> NodeRecord:
    """A vnode's record from its attributes as they were written."""
    return NodeRecord(**{name: value for name, value in record.items() if name in _NODE_FIELDS})
