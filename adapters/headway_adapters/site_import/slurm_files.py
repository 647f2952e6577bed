"""Slurm's files as they are written: ``slurm.conf``, ``gres.conf``, what ``scontrol`` and ``sacctmgr`` print.

Each file is known by what is in it: ``sacctmgr dump CLUSTER file=...``, ``sacctmgr -P show assoc tree``,
``... show qos`` and ``... show user`` (parsable, with their header), ``scontrol show config``,
``scontrol show partition`` and ``... node`` (with and without ``-o``), ``gres.conf``, else ``slurm.conf``.
What ``scontrol`` shows of partitions and nodes is what Slurm runs with, so it stands in the place of their
lines in ``slurm.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headway_adapters.site_import.found import Imported, Line, readable, shown, whole
from headway_adapters.site_import.slurm_includes import resolved_files, with_included
from headway_adapters.site_import.slurm_names import is_first_key
from headway_adapters.site_import.slurm_record_keys import unknown_keys
from headway_adapters.slurm import hostlist
from headway_adapters.slurm.reader.policy import ASSOCIATIONS, QOS, USERS

_ASSIGNED = re.compile(r'([A-Za-z0-9_]+)\s*(?<!\+)\+?=\s*("[^"]*"|\S+)')
_SHOWN_CONFIG = re.compile(r"([A-Za-z0-9_]+)\s+= ?(.*)")
#: A value of a shown record goes on until the next key: kernels' names have blanks.
_SHOWN_FIELD = re.compile(r"(?<!\S)([A-Za-z][A-Za-z0-9_]*)=(.*?)(?=\s+[A-Za-z][A-Za-z0-9_]*=|$)")
#: The keys of which each record of a kind has at least one, and that no line of slurm.conf has.
_SHOWN_KINDS = {
    "partitionname": re.compile(r"(?<!\S)(TotalNodes|TotalCPUs)="),
    "nodename": re.compile(r"(?<!\S)(CPUTot|CPUAlloc)="),
}
_COMMENT = re.compile(r"(?<!\\)#.*")
#: The keys of gres.conf.
_GRES = frozenset({
    "autodetect", "count", "cores", "cpus", "file", "files", "flags", "ignore", "links", "multiplefiles",
    "name", "nodename", "type",
})  # fmt: skip
#: First key -> the file that such a line belongs to.
_OTHER_FILES = {
    "switchname": "topology.conf", "blockname": "topology.conf", "constraincores": "cgroup.conf",
    "cgroupplugin": "cgroup.conf", "cgroupautomount": "cgroup.conf", "constrainramspace": "cgroup.conf",
    "dbdhost": "slurmdbd.conf",
}  # fmt: skip
#: First keys of lines whose other keys are about what the first names.
_RECORDS = ("downnodes", "frontendname")
#: So many strange lines of a file are named each.
_FEW = 10
#: What a partition may be called.
_PARTITION = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
_DUMPED = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*'?((?:[^':]|(?<=\\)')*)'?(.*)")
#: Types of resources have colons and equals signs as well (``gres/gpu:a100=8``), but no capital letter.
_FIELD = re.compile(r":([A-Z]\w*)=(?:'([^']*)'|((?:[^:]|:(?![A-Z]\w*=))*))")
#: The line of dashes below the header of what is printed for people.
_RULED = re.compile(r"-+(\s+-+)+")

#: How columns of associations and QOS are called: in the dump, in headers, and here.
_COLUMNS = {
    "fairshare": "Share", "rawshares": "Share", "parname": "ParentName", "parentname": "ParentName",
    "maxtresperjob": "MaxTRES", "maxtrespj": "MaxTRES", "maxtresminsperjob": "MaxTRESMins",
    "maxtresminspj": "MaxTRESMins", "maxwalldurationperjob": "MaxWall", "maxwallduration": "MaxWall",
    "maxwallpj": "MaxWall",
    "maxtrespernode": "MaxTRESPerNode", "maxtrespn": "MaxTRESPerNode", "maxjobsperuser": "MaxJobsPU",
    "maxtresperuser": "MaxTRESPU", "maxjobsperaccount": "MaxJobsPA", "maxtresperaccount": "MaxTRESPA",
    "defacct": "DefaultAccount", "defaultaccount": "DefaultAccount", "qosname": "Name",
    # Flags of a QOS have no counterpart in what is written down.
    **{name.lower(): name for name in (*ASSOCIATIONS, *QOS, *USERS) if name != "Flags"},
}  # fmt: skip

#: Keys in lower case -> values, and the line where they are.
Record = tuple[dict[str, str], Line]


@dataclass
class SlurmFiles:
    """What the files say, before anything is made of it."""

    #: The first line of all.
    first: Line | None = None
    #: Key, lower case -> value and line.
    config: dict[str, tuple[str, Line]] = field(default_factory=dict)
    partitions: list[Record] = field(default_factory=list)
    nodes: list[Record] = field(default_factory=list)
    #: Lines of gres.conf that describe devices.
    gres: list[Record] = field(default_factory=list)
    #: The same of partitions and nodes that ``scontrol`` shows, until all is read.
    shown: dict[str, list[Record]] = field(default_factory=lambda: {"partitionname": [], "nodename": []})
    associations: list[Record] = field(default_factory=list)
    qos: list[Record] = field(default_factory=list)
    users: list[Record] = field(default_factory=list)

    def value(self, key: str) -> str:
        """What a key of slurm.conf says; "" if nothing."""
        text = self.config[key.lower()][0] if key.lower() in self.config else ""
        return "" if text.upper() in ("(NULL)", "N/A") else text

    def line(self, key: str) -> Line | None:
        """Where it says that."""
        return self.config[key.lower()][1] if key.lower() in self.config else None


def read_files(files: Sequence[Sequence[Line]], found: Imported) -> SlurmFiles:
    """What is in them; lines that cannot be read, and names that are there twice, are remarked."""
    read = SlurmFiles()
    given = resolved_files(files)
    for lines in files:
        read.first = read.first or next(iter(lines), None)
        _read(list(with_included(list(readable(lines, found)), given, found)), read, found)
    _put_shown_first(read)
    _leave_out_nameless(read, found)
    for record, line in read.partitions:
        _split_priority(record, line, found)
    return read


def _read(lines: list[Line], read: SlurmFiles, found: Imported) -> None:
    said = [line for line in lines if line.text.strip() and not line.text.lstrip().startswith("#")]
    if not said:
        return
    head = said[0].text
    if any(_DUMPED.match(line.text.strip()) for line in said[:3]):
        _read_dump(said, read, found)
    elif "|" in head:
        _read_table(said, read, found)
    elif len(said) > 1 and _RULED.fullmatch(said[1].text.strip()):
        found.broken(
            said[0],
            "expected columns with bars between them, found a table whose columns may be cut; print it with "
            "`sacctmgr -P show ...`",
        )
    elif head.startswith("Configuration data as of") or _is_shown_config(said[:20]):
        for line in said:
            match = _SHOWN_CONFIG.fullmatch(line.text.strip())
            if match is not None and match[2].strip().upper() not in ("(NULL)", "N/A", ""):
                read.config[match[1].lower()] = (match[2].strip(), line)
    elif (kind := _shown_kind(said)) is not None:
        _read_shown(kind, said, read)
    elif _is_gres(said):
        _read_gres(lines, read, found)
    elif not _is_conf(said):
        found.broken(
            said[0],
            "expected slurm.conf, gres.conf, or what scontrol show or sacctmgr -P show prints, found a file "
            "of another kind; no line of it is read",
        )
    else:
        _read_conf(lines, read, found)


def _shown_kind(lines: Sequence[Line]) -> str | None:
    """Of which kind the records are that ``scontrol show`` printed; None if it printed none."""
    kind = lines[0].text.partition("=")[0].lower()
    sign = _SHOWN_KINDS.get(kind)
    return kind if sign is not None and any(sign.search(line.text) for line in lines) else None


def _read_shown(kind: str, lines: Sequence[Line], read: SlurmFiles) -> None:
    """Records of ``scontrol show``: each begins with its name, and goes on in lines that are set in."""
    records: list[Record] = read.shown[kind]
    for line in lines:
        pairs = [
            (key.lower(), value.strip())
            for key, value in _SHOWN_FIELD.findall(line.text)
            if value.strip().upper() not in ("(NULL)", "N/A", "NONE", "")
        ]
        if pairs and pairs[0][0] == kind:
            records.append((dict(pairs), line))
        elif records:
            records[-1][0].update(pairs)


def _put_shown_first(read: SlurmFiles) -> None:
    """What ``scontrol`` shows of a partition or node replaces what slurm.conf says of it."""
    partitions = {record["partitionname"] for record, _ in read.shown["partitionname"]}
    read.partitions = [
        *read.shown["partitionname"],
        *(one for one in read.partitions if one[0]["partitionname"] not in partitions),
    ]
    nodes = {record["nodename"] for record, _ in read.shown["nodename"]}
    read.nodes = [*read.shown["nodename"], *(one for one in read.nodes if not _all_of(one[0], nodes))]


def _all_of(record: Mapping[str, str], names: set[str]) -> bool:
    """Whether all nodes of a record are among these."""
    try:
        return bool(names) and names.issuperset(hostlist.expand(record["nodename"]))
    except (ValueError, OverflowError):
        return False


def _split_priority(record: dict[str, str], line: Line, found: Imported) -> None:
    """``Priority=`` is both factor and tier, whatever else is said of them, as slurmctld 22.05 has it."""
    text = record.get("priority", "")
    if not text:
        return
    if whole(text) is None and text.upper() not in ("UNLIMITED", "INFINITE"):
        found.broken(line, f"Priority: expected a number from 0 on, found {shown(text)}")
        return
    record["priorityjobfactor"] = record["prioritytier"] = text


def _is_shown_config(lines: Sequence[Line]) -> bool:
    """Whether so many lines come from ``scontrol show config``."""
    keys = [match[1].lower() for line in lines if (match := _SHOWN_CONFIG.fullmatch(line.text.strip()))]
    return len(keys) > _FEW and sum(map(is_first_key, keys)) > len(keys) // 2


def _is_conf(lines: Sequence[Line]) -> bool:
    """Whether a file may be slurm.conf: most of its lines are, or they are few of which one can be read."""
    firsts = [_ASSIGNED.match(line.text.strip()) for line in lines]
    known = sum(first is not None and is_first_key(first[1].lower()) for first in firsts)
    strange = len(lines) - known
    if not known:
        return len(lines) == 1 or (strange <= _FEW and any(first is not None for first in firsts))
    return strange <= _FEW or strange <= 2 * known


def _is_gres(lines: Sequence[Line]) -> bool:
    """Whether each line has keys of gres.conf alone, and names a resource or how they are detected."""
    keys = [{key.lower() for key, _ in _ASSIGNED.findall(line.text)} for line in lines]
    keys = [found for found in keys if found]
    return bool(keys) and all(found <= _GRES and found & {"name", "autodetect"} for found in keys)


def _read_gres(lines: Sequence[Line], read: SlurmFiles, found: Imported) -> None:
    """Lines of gres.conf; lines that say only how devices are detected do not give their number."""
    for line, pairs in _assigned(lines, found):
        record = dict(pairs)
        if "name" in record:
            read.gres.append((record, line))


def _joined(lines: Sequence[Line]) -> Iterator[Line]:
    """Without comments; lines that end with a backslash go on in the next one."""
    begun, so_far = None, ""
    for line in lines:
        text = _COMMENT.sub("", line.text).rstrip()
        begun = begun or line
        if text.endswith("\\"):
            so_far += text[:-1]
            continue
        if (so_far + text).strip():
            yield Line(begun.file, begun.number, (so_far + text).strip())
        begun, so_far = None, ""
    if so_far.strip() and begun is not None:
        yield Line(begun.file, begun.number, so_far.strip())


def _assigned(lines: Sequence[Line], found: Imported) -> Iterator[tuple[Line, list[tuple[str, str]]]]:
    """Line by line what is assigned, keys in lower case; the rest is remarked."""
    for line in _joined(lines):
        pairs = [(key.lower(), value.strip('"')) for key, value in _ASSIGNED.findall(line.text)]
        rest = _ASSIGNED.sub("", line.text).strip()
        if not pairs or rest:
            found.broken(line, f"expected Key=Value, found {shown(rest or line.text)}")
        if pairs:
            yield line, pairs


def _read_conf(lines: Sequence[Line], read: SlurmFiles, found: Imported) -> None:
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for line, pairs in _assigned(lines, found):
        kind = pairs[0][0]
        if kind in defaults:
            for key, why in unknown_keys(kind, [key for key, _ in pairs]):
                found.leave(line, f"{as_written(key, line)} {why}")
            record = {**defaults[kind], **dict(pairs)}
            if pairs[0][1].upper() == "DEFAULT":
                defaults[kind] = {key: value for key, value in record.items() if key != kind}
            elif kind == "nodename":
                read.nodes.append((record, line))
            else:
                read.partitions.append((record, line))
        elif kind in _OTHER_FILES:
            file = _OTHER_FILES[kind]
            found.leave(line, f"{line.text.split()[0]} is not carried over: it belongs to {file}")
        elif kind != "nodeset":
            for key, value in pairs[:1] if kind in _RECORDS else pairs:
                if key in read.config and key == "preemptmode":
                    continue
                read.config[key] = (value, line)


def _read_dump(lines: Sequence[Line], read: SlurmFiles, found: Imported) -> None:
    parent = "root"
    for line in lines:
        match = _DUMPED.fullmatch(line.text.strip())
        if match is None:
            found.broken(line, f"expected \"Cluster - 'NAME'\", \"Parent - ...\", \"Account - ...\" or "
                         f"\"User - ...\", found {shown(line.text)}")  # fmt: skip
            continue
        kind, name, rest = match.groups()
        # As the reader of rows has it, in which a bar ends a cell.
        name = _cell(name)
        told = _FIELD.findall(rest)
        for key, why in unknown_keys("", [key for key, _, _ in told]):
            found.leave(line, f"{key} {why}")
        fields = {key.lower(): _cell(quoted or plain) for key, quoted, plain in told}
        row = {_COLUMNS.get(key, key): value for key, value in fields.items()}
        if kind == "Parent":
            parent = name
        elif kind == "Account":
            read.associations.append(({**row, "Account": name, "User": "", "ParentName": parent}, line))
        elif kind == "User":
            read.associations.append(({**row, "Account": parent, "User": name}, line))
            if "DefaultAccount" in row:
                read.users.append(({"User": name, "DefaultAccount": row["DefaultAccount"]}, line))
        else:
            # What a cluster is given holds for root.
            read.associations.append(({**row, "Account": "root", "User": "", "ParentName": ""}, line))


def _read_table(lines: Sequence[Line], read: SlurmFiles, found: Imported) -> None:
    """What ``sacctmgr -P show`` prints, with its header."""
    head, *rows = lines
    names = [name.replace(" ", "").lower() for name in head.text.rstrip("|").split("|")]
    columns = [_COLUMNS.get(name, name) for name in names]
    if "Account" in columns and "User" in columns:
        where, kind, key = read.associations, "the association of account", "Account"
    elif "Name" in columns:
        where, kind, key = read.qos, "QOS", "Name"
    elif "User" in columns and "DefaultAccount" in columns:
        where, kind, key = read.users, "user", "User"
    else:
        found.broken(head, "expected the header of `sacctmgr -P show assoc`, `... qos` or `... user`, found "
                     f"{shown(head.text)}")  # fmt: skip
        return
    if (
        where is read.associations
        and "ParentName" not in columns
        and not any("| " in line.text for line in rows)
    ):
        found.leave(head, "accounts are listed without their parents and are all put at the top; add the "
                          "word `tree`, or give the file of `sacctmgr dump`")  # fmt: skip
    above: list[tuple[int, str]] = [(-1, "root")]
    for line in rows:
        cells = line.text.split("|")
        if len(cells) == len(columns) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != len(columns):
            at = columns.index(key)
            what = f"{kind} {shown(cells[at])}" if at < len(cells) else "the line"
            found.broken(line, f"expected {len(columns)} columns, found {len(cells)}; {what} is left out")
            continue
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        if where is read.associations and not row["User"] and "ParentName" not in row:
            # With the word "tree" each account is indented below its parent.
            raw = cells[columns.index("Account")]
            depth = len(raw) - len(raw.lstrip())
            while above[-1][0] >= depth and len(above) > 1:
                above.pop()
            row["ParentName"] = above[-1][1] if row["Account"] != "root" else ""
            above.append((depth, row["Account"]))
        where.append((row, line))


def _leave_out_nameless(read: SlurmFiles, found: Imported) -> None:
    """Forget rows and partitions whose names are none, or are there already, with a remark."""
    for rows, key in ((read.associations, "Account"), (read.qos, "Name"), (read.users, "User")):
        for row, line in rows:
            if not row[key]:
                found.broken(line, f"expected a name, found {shown(line.text)}")
        rows[:] = [(row, line) for row, line in rows if row[key]]
    known: dict[str, Line] = {}
    for row, line in read.qos:
        first = known.setdefault(row["Name"], line)
        if first is not line:
            found.broken(line, f"QOS {row['Name']} is there already, in {first.where}")
    read.qos = [(row, line) for row, line in read.qos if known[row["Name"]] is line]
    names: set[str] = set()
    partitions: list[Record] = []
    for record, line in read.partitions:
        name = record["partitionname"]
        if _PARTITION.fullmatch(name) is None:
            found.broken(line, f"PartitionName: expected a name, found {shown(name)}")
        elif name in names:
            found.broken(line, f"partition {name!r} is there already")
        else:
            names.add(name)
            partitions.append((record, line))
    read.partitions = partitions


def _cell(text: str) -> str:
    """A name or value as a row of columns can have it."""
    return text.replace("|", " ").strip()


def as_written(key: str, line: Line) -> str:
    """A key with the capital letters that it has in its line."""
    match = re.search(re.escape(key), line.text, re.IGNORECASE)
    return match[0] if match is not None else key
