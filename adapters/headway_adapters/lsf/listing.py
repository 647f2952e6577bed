"""What LSF's commands print -> plain records. Pure; tested on recorded output.

Jobs are read in one of two ways:

* ``bjobs -o FIELDS -json`` of IBM Spectrum LSF tells everything at once.
* Elsewhere ``bjobs -w`` tells which job is where, and ``bjobs -UF`` (or ``-l``) the details. (volclava's JSON
  has some of the fields only, and of a parallel job only the first host.)

What users write (names, commands) may hold blanks, brackets, quotes and newlines, and might imitate
a whole record. So *which jobs exist* never comes from the details alone, and a job that is told of twice
in one listing is *doubtful*: it keeps what it has and is not started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headway.errors import Failure
from headway_adapters.lsf import values
from headway_adapters.lsf.documents import cell, raw_records, records
from headway_adapters.lsf.parsed import Known
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.readings import digest

#: What we ask IBM Spectrum LSF for; where a field of ``NEEDED`` is lacking, jobs are read from text.
FIELDS = (
    "jobid", "jobindex", "stat", "user", "user_group", "queue", "job_name", "job_description", "proj_name",
    "from_host", "exec_host", "alloc_slot", "nalloc_slot", "ask_hosts", "submit_time", "start_time",
    "run_time", "finish_time", "specified_start_time", "min_req_proc", "max_req_proc", "nreq_slot",
    "runtimelimit", "combined_resreq", "dependency", "exclusive", "rsvid", "exit_code", "exit_reason",
    "pend_reason",
)  # fmt: skip
#: Without these a JSON listing does not say what a job asks for.
NEEDED = frozenset(
    {"jobindex", "specified_start_time", "runtimelimit", "combined_resreq", "dependency"}
)  # fmt: skip

_BAD_FIELD = re.compile(r"<([A-Za-z_%]+)> in the format string is not a valid field name")
_NOTHING = re.compile(r"^(?:bjobs: )?No (?:unfinished |matching |pending |running )?job found", re.MULTILINE)
_ARRAY_NAME = re.compile(r"\[([0-9]{1,9})\]$")
_CODE = re.compile(r"[0-9]{1,9}")
_JOB_ID = re.compile(r"([0-9]{1,18})(?:\[([0-9]{1,9})\])?")


class Row(msgspec.Struct, frozen=True, gc=False):
    """A job's identity, where it stands and where it runs. Times are absolute seconds."""

    job_id: str
    user: str
    #: LSF's word.
    stat: str
    queue: str
    name: str = ""
    array: str = ""
    index: int | None = None
    from_host: str = ""
    hosts: tuple[tuple[str, int], ...] = ()
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    project: str = ""
    group: str = ""
    #: Seconds for which it has run; None: not told.
    ran: float | None = None
    #: Told of twice in one listing.
    doubtful: bool = False


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What a job asks for, and how it ended."""

    #: Slots; 0: not told.
    least: int = 0
    most: int = 0
    #: Seconds; None: no limit of its own.
    run_limit: float | None = None
    requirement: str = ""
    dependency: str = ""
    begin: float | None = None
    exclusive: bool = False
    asked_hosts: tuple[str, ...] = ()
    reservation: str = ""
    #: The job description (``bsub -Jd``).
    description: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    #: LSF's word for how it ended, such as TERM_RUNLIMIT.
    exit_reason: str = ""
    #: Why it waits.
    reason: str = ""
    doubtful: bool = False


class Parsed:
    """What the records of the last look said, one by one, in each form of a listing."""

    def __init__(self) -> None:
        self.json: Known[tuple[Row, Facts]] = Known()
        #: By the line, and the column in which a job's name begins.
        self.wide: Known[Row] = Known()
        #: With the job's id.
        self.long: Known[tuple[str, Facts]] = Known()

    def begin(self, now: float) -> None:
        """A look begins (seconds)."""
        for known in (self.json, self.wide, self.long):
            known.begin(now)

    def end(self) -> None:
        """All of the look is read."""
        for known in (self.json, self.wide, self.long):
            known.end()


def nothing_found(stderr: str) -> bool:
    """Whether a failed ``bjobs`` only says that there is no job."""
    return _NOTHING.search(stderr) is not None


def bad_field(stderr: str) -> str:
    """The field that ``bjobs -o`` does not know, in lower case; "" if that is not what was said."""
    match = _BAD_FIELD.search(stderr)
    return match.group(1).lower() if match is not None else ""


# ---------------------------------------------------------------------- jobs: which exist


def read_json_rows(
    data: bytes, times: Calendar, notes: set[str], parsed: Parsed | None = None
) -> tuple[dict[str, Row], dict[str, Facts]]:
    """``bjobs -a -o FIELDS -json``: rows, and facts as far as the fields tell them. ``parsed``: what the
    records of the look before said."""
    try:
        told = _told(raw_records(data), times, (parsed or Parsed()).json)
    except (msgspec.DecodeError, RecursionError):
        told = [_json_job(record, times) for record in records(data, "bjobs: the listing of jobs")]
    rows: dict[str, Row] = {}
    facts: dict[str, Facts] = {}
    for row, asked in told:
        if row is not None and asked is not None and _is_first(rows, row, notes):
            facts[row.job_id] = asked
        elif row is None and asked is not None:
            notes.add(_NUMBERLESS)
    return rows, facts


def _told(
    listed: Iterable[msgspec.Raw], times: Calendar, known: Known[tuple[Row, Facts]]
) -> list[tuple[Row | None, Facts | None]]:
    found: list[tuple[Row | None, Facts | None]] = []
    for raw in listed:
        key = digest(memoryview(raw))
        said = known.get(key)
        if said is not None:
            found.append(said)
            continue
        times.begin()
        row, facts = _json_job(msgspec.json.decode(raw), times)
        found.append((row, facts))
        if row is not None and facts is not None:
            known.keep(key, (row, facts), times)
    return found


def _json_job(record: Any, times: Calendar) -> tuple[Row | None, Facts | None]:
    """What one record says; without a row for a job that has no number, without anything for no record."""
    if not isinstance(record, dict) or "ERROR" in record:
        return None, None
    row = _row(
        cell(record, "JOBID"), cell(record, "JOBINDEX"), cell(record, "JOB_NAME"),
        user=cell(record, "USER"), stat=cell(record, "STAT"), queue=cell(record, "QUEUE"),
        from_host=cell(record, "FROM_HOST"),
        hosts=values.hosts(cell(record, "ALLOC_SLOT") or cell(record, "EXEC_HOST")),
        submitted=times.fact(cell(record, "SUBMIT_TIME")),
        started=times.fact(cell(record, "START_TIME")),
        ended=times.fact(cell(record, "FINISH_TIME")), project=cell(record, "PROJ_NAME"),
        group=cell(record, "USER_GROUP"), ran=values.run_time(cell(record, "RUN_TIME")),
    )  # fmt: skip
    return row, _json_facts(record, times)


def read_owners(data: bytes) -> dict[str, str]:
    """``bjobs -o "jobid user" -json``: the number of each job and its user, arrays without an index."""
    listed = records(data, "bjobs: the numbers of jobs")
    return {cell(record, "JOBID").partition("[")[0]: cell(record, "USER") for record in listed}


def _json_facts(record: Mapping[str, Any], times: Calendar) -> Facts:
    begin = cell(record, "SPECIFIED_START_TIME")
    code = cell(record, "EXIT_CODE")
    least = values.integer(cell(record, "MIN_REQ_PROC"))
    return Facts(
        least=least or values.integer(cell(record, "NREQ_SLOT")),
        most=values.integer(cell(record, "MAX_REQ_PROC")) or least,
        run_limit=values.run_limit(cell(record, "RUNTIMELIMIT")),
        requirement=cell(record, "COMBINED_RESREQ"),
        dependency=cell(record, "DEPENDENCY"),
        begin=times.wish(begin) if begin else None,
        exclusive=cell(record, "EXCLUSIVE").upper() in ("Y", "YES"),
        asked_hosts=tuple(name for name in re.split(r"[\s:,]+", cell(record, "ASK_HOSTS")) if name),
        reservation=cell(record, "RSVID"),
        description=cell(record, "JOB_DESCRIPTION"),
        exit_code=int(code) if _CODE.fullmatch(code) else None,
        exit_reason=cell(record, "EXIT_REASON"),
        reason=cell(record, "PEND_REASON").strip().rstrip(";"),
    )  # fmt: skip


_NUMBERLESS = "a job without a number was left out"


def _row(
    number: str, element: str, name: str, *, user: str, stat: str, queue: str, **more: Any
) -> Row | None:
    """What one record says; None of a job without a number."""
    match = _JOB_ID.fullmatch(number)
    if match is None:
        return None
    array, inner = match.groups()
    index = inner or (str(stated) if (stated := values.integer(element)) > 0 else None)
    if index is None and not element:
        # Where the index has no column of its own it stands in the name, and only there.
        suffix = _ARRAY_NAME.search(name)
        index = suffix.group(1) if suffix is not None else None
    job_id = f"{array}[{index}]" if index is not None else array
    return Row(
        job_id, user, stat.upper(), queue, name, array if index is not None else "",
        int(index) if index is not None else None, **more,
    )  # fmt: skip


def _is_first(rows: dict[str, Row], row: Row, notes: set[str]) -> bool:
    """Add a row. Of a job that is listed twice the first row counts, and it is doubtful."""
    job_id = row.job_id
    if job_id not in rows:
        rows[job_id] = row
        return True
    rows[job_id] = msgspec.structs.replace(rows[job_id], doubtful=True)
    notes.add(f"job {job_id} is listed twice; headway does not touch it")
    return False


_ROW_BEGIN = re.compile(r"([0-9]+) +(\S+) +([A-Z_]{2,10}) +(\S+) +(\S+) +")
_ROW_END = re.compile(r"(?:^|\s)([A-Z][a-z]{2} +[0-9]{1,2} [0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?: [0-9]{4})?) *$")
_UNPLACED = frozenset({"PEND", "PSUSP", "FWD_PEND"})


def read_wide_rows(
    text: str, times: Calendar, notes: set[str], parsed: Parsed | None = None
) -> dict[str, Row]:
    """``bjobs -w``: the fixed columns from the left, the time from the right, the name between.

    A name may hold blanks and newlines: a row goes on until a line ends with a time. Where a job
    runs nowhere its column is ``-`` or blank.
    """
    rows: dict[str, Row] = {}
    known = (parsed or Parsed()).wide
    lines = text.split("\n")
    column = lines[0].find("JOB_NAME") if lines else -1
    if text.strip() and column < 0:
        raise Failure(f"bjobs -w: expected a table of jobs, found {lines[0][:60]!r}")
    open_row, begin = "", None
    for line in lines[1:]:
        if not open_row:
            said = known.get((column, line))
            if said is not None:
                _is_first(rows, said, notes)
                continue
            if not line.strip():
                continue
            begin = _ROW_BEGIN.match(line)
            if begin is None:
                notes.add("a line of bjobs -w could not be read")
                continue
        else:
            notes.add("a job's name in bjobs -w has several lines")
        at = len(open_row) + 1 if open_row else 0
        open_row = f"{open_row}\n{line}" if open_row else line
        end = _ROW_END.search(line)
        assert begin is not None
        if end is None or at + end.start() < begin.end() - 1:
            continue
        number, user, stat, queue, from_host = begin.groups()
        rest = open_row[begin.end() : at + end.start()]
        hosts, name = _placed(rest, stat, begin.end(), column)
        times.begin()
        row = _row(
            number, "", name, user=user, stat=stat, queue=queue, from_host=from_host,
            hosts=values.hosts(hosts), submitted=times.fact(end.group(1)),
        )  # fmt: skip
        if row is None:
            notes.add(_NUMBERLESS)
        else:
            _is_first(rows, row, notes)
            if not at:
                known.keep((column, line), row, times)
        open_row = ""
    if open_row:
        raise Failure("bjobs -w: the table ends in the middle of a row")
    return rows


def _placed(rest: str, stat: str, at: int, column: int) -> tuple[str, str]:
    """EXEC_HOST and JOB_NAME out of the text that begins at ``at``; JOB_NAME's header is at ``column``."""
    if rest == "-" or rest.startswith("- "):
        return "", rest[1:].strip(" ")
    if stat in _UNPLACED or (stat == "EXIT" and at >= column):
        return "", rest.strip(" ")
    hosts, _, name = rest.partition(" ")
    return hosts, name.strip(" ")


# ---------------------------------------------------------------------- jobs: details

_SEPARATOR = "\n" + "-" * 78 + "\n"
_HEAD = re.compile(r"\s*Job <([0-9]{1,18}(?:\[[0-9]{1,9}\])?)>, ")
_STAMP = (
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?[A-Z][a-z]{2} +[0-9]{1,2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?: [0-9]{4})?"
)
_SUBMITTED = re.compile(rf"^({_STAMP}): Submitted from host <([^>\n]*)>(.*)$", re.MULTILINE)
_STARTED = re.compile(
    rf"^({_STAMP}): (?:\[[0-9]+\] )?(?:[Ss]tarted|[Dd]ispatched) (?:[0-9]+ Task\(s\) )?(?:on|to) (.*)$",
    re.MULTILINE,
)
_FINISHED = re.compile(
    rf"^({_STAMP}): "
    r"(?:(Done successfully)|Exited(?: with exit code ([0-9]{1,9})| by signal ([0-9]{1,9}))?"
    r"|Completed <(done|exit)>|Termination request issued)(.*)$",
    re.MULTILINE,
)
_TERM = re.compile(r"\b(TERM_[A-Z_]+)")
_TASKS = re.compile(r", ([0-9]{1,9})(?:[-,] ?([0-9]{1,9}))? (?:Processors Requested|Task\(s\))")
_REQUIREMENT = re.compile(r", Requested Resources ?<(.*?)>(?=, [A-Z0-9]|;?$)")
_DEPENDENCY = re.compile(r", Dependency Condition <(.*?)>(?=, [A-Z0-9]|;?$)")
_BEGIN = re.compile(rf", Specified Start Time <({_STAMP})>")
_ASKED = re.compile(r", Specified Hosts (<[^>]*>(?:, <[^>]*>)*)")
_RESERVED = re.compile(r", (?:Advance )?Reservation <([^>]*)>")
#: It is the last of its line, where only words and notes of ours do not stand before others (IBM's). Of one
#: that ends nowhere for certain all that follows is taken, too.
_DESCRIPTION = re.compile(
    r", Job Description <(?:([^<>\n]*(?=>$)|headway[:-][A-Za-z0-9_.,=+:/ -]*(?=>, [A-Z]))>|(.*))",
    re.MULTILINE,
)
LIMITS = re.compile(
    r"^ ((?:CPULIMIT|RUNLIMIT|PROCLIMIT|TASKLIMIT)(?: +[A-Z]+LIMIT)*) *\n (.*)$", re.MULTILINE
)
_MINUTES = re.compile(r"\b([0-9]{1,12}(?:\.[0-9]+)?) min(?: of \S+)?")
_COMBINED = re.compile(r"^ Combined: (.*)$", re.MULTILINE)
_REASONS = re.compile(r"^ (?:PENDING|SUSPENDING) REASONS:\n (.*)$", re.MULTILINE)


def read_long(text: str, times: Calendar, notes: set[str], parsed: Parsed | None = None) -> dict[str, Facts]:
    """``bjobs -UF``, or ``bjobs -l`` after :func:`unwrapped`: what each job asks for, by job id."""
    found: dict[str, Facts] = {}
    if not text.strip():
        return found
    known = (parsed or Parsed()).long
    for record in text.split(_SEPARATOR):
        key = digest(record.encode("utf-8", "surrogatepass"))
        said = known.get(key)
        if said is None:
            head = _HEAD.match(record)
            if head is None:
                if record.strip():
                    notes.add("a part of bjobs -UF could not be read")
                continue
            times.begin()
            said = head.group(1), _facts(record, head.end(), times)
            known.keep(key, said, times)
        job_id, facts = said
        if job_id in found:
            found[job_id] = msgspec.structs.replace(found[job_id], doubtful=True)
            notes.add(f"job {job_id} is described twice; headway does not touch it")
            continue
        found[job_id] = facts
    return found


def _facts(record: str, at: int, times: Calendar) -> Facts:
    submitted = _SUBMITTED.search(record, at)
    if submitted is None:
        # Without this line it is unknown what the job asks for.
        return Facts(doubtful=True)
    told: dict[str, Any] = {"submitted": times.fact(submitted.group(1))}
    _asked_for(told, submitted.group(3), times)
    combined = _COMBINED.search(record, submitted.end())
    if combined is not None and combined.group(1).strip() not in ("", "-"):
        told["requirement"] = combined.group(1).strip()
    if "Job Description <" in record and (match := _DESCRIPTION.search(record, at, submitted.start())):
        told["description"] = match[2] if match[1] is None else match[1]
    limits = LIMITS.search(record, submitted.end())
    if limits is not None:
        told["run_limit"] = run_limit(limits)
    for match in _STARTED.finditer(record, submitted.end()):
        told["started"] = times.fact(match.group(1))
    for match in _FINISHED.finditer(record, submitted.end()):
        told |= _finish(match, times)
    if " REASONS:" in record and (match := _REASONS.search(record, submitted.end())) is not None:
        told["reason"] = match.group(1).strip().rstrip(";")
    return Facts(**told)


def _asked_for(told: dict[str, Any], asked: str, times: Calendar) -> None:
    """What stands in the line of the submission."""
    told["least"] = told["most"] = 1
    if "Task(s)" in asked or "Processors" in asked:
        for tasks in _TASKS.finditer(asked):
            told["least"] = int(tasks.group(1))
            told["most"] = int(tasks.group(2) or tasks.group(1))
    requested = _REQUIREMENT.search(asked)
    if requested is not None:
        told["requirement"] = requested.group(1)
    if "Dependency" in asked and (match := _DEPENDENCY.search(asked)) is not None:
        told["dependency"] = match.group(1)
    if "Specified" in asked:
        if (match := _BEGIN.search(asked)) is not None:
            told["begin"] = times.wish(match.group(1))
        if (match := _ASKED.search(asked)) is not None:
            told["asked_hosts"] = tuple(re.findall(r"<([^>]*)>", match.group(1)))
    told["exclusive"] = ", Exclusive Execution" in asked
    if "eservation <" in asked and (match := _RESERVED.search(asked)) is not None:
        told["reservation"] = match.group(1)


def run_limit(limits: re.Match[str]) -> float | None:
    """Seconds of the run limit in what :data:`LIMITS` matched; None if there is none."""
    names = [name for name in limits.group(1).split() if name in ("CPULIMIT", "RUNLIMIT")]
    minutes = _MINUTES.findall(limits.group(2))
    if "RUNLIMIT" not in names or len(minutes) <= names.index("RUNLIMIT"):
        return None
    return float(minutes[names.index("RUNLIMIT")]) * 60.0


def _finish(match: re.Match[str], times: Calendar) -> dict[str, Any]:
    """What an end tells of a job's facts."""
    when, done, code, signal, completed, rest = match.groups()
    term = _TERM.search(rest)
    told: dict[str, Any] = {
        "ended": times.fact(when), "exit_reason": term.group(1) if term is not None else ""
    }  # fmt: skip
    if done or completed == "done":
        told["exit_code"] = 0
    elif code:
        told["exit_code"] = int(code)
    elif signal:
        told["exit_code"] = 128 + int(signal)
    return told


_INDENT = " " * 21


def unwrapped(text: str) -> str:
    """``bjobs -l`` and ``bhist -l`` cut lines at 80 characters and go on under 21 blanks: joined again."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(_INDENT) and line.strip() and lines and lines[-1].strip():
            lines[-1] += line[len(_INDENT) :]
        else:
            lines.append(line)
    return "\n".join(lines)


# ---------------------------------------------------------------------- ended jobs


class Ending(msgspec.Struct, frozen=True, gc=False):
    """How a job ended, as its history tells it; ``state`` is "ended", "alive", or "requeued": told to go
    back to the queue, and not there yet."""

    state: str
    done: bool = False
    exit_code: int | None = None
    exit_reason: str = ""
    started: float | None = None
    ended: float | None = None
    hosts: tuple[tuple[str, int], ...] = ()


_HISTORY_HOST = re.compile(r"<(?:([0-9]{1,9})\*)?([^<>]+)>")
_BACK = re.compile(rf"^{_STAMP}: (?:Pending: |Job has been requeued)", re.MULTILINE)
_REQUEUED = re.compile(rf"^{_STAMP}: Signal <REQUEUE_[A-Z]+> requested", re.MULTILINE)


def told_of(text: str) -> list[str]:
    """The jobs that the records of a ``bhist -l`` are about, each as often as it has one."""
    heads = (_HEAD.match(record) for record in unwrapped(text).split(_SEPARATOR))
    return [head.group(1) for head in heads if head is not None]


def read_history(text: str, times: Calendar) -> dict[str, Ending]:
    """``bhist -l``: what became of each job; the last execution counts."""
    found: dict[str, Ending] = {}
    for record in unwrapped(text).split(_SEPARATOR):
        head = _HEAD.match(record)
        if head is None:
            continue
        submitted = _SUBMITTED.search(record, head.end())
        if submitted is None:
            continue
        at = submitted.end()
        last = 0
        started: float | None = None
        hosts: dict[str, int] = {}
        ended = None
        for match in _STARTED.finditer(record, at):
            last, started = match.start(), times.fact(match.group(1))
            hosts = {}
            for count, name in _HISTORY_HOST.findall(match.group(2).partition(", Exec")[0]):
                hosts[name] = hosts.get(name, 0) + int(count or 1)
        began = last
        for match in _FINISHED.finditer(record, at):
            last, ended = match.start(), match
        back = any(match.start() > last for match in _BACK.finditer(record, at))
        if ended is None or back or ended.start() < last:
            found[head.group(1)] = Ending("alive", started=started, hosts=tuple(hosts.items()))
            continue
        facts = Facts(**_finish(ended, times))
        requeued = any(match.start() > began for match in _REQUEUED.finditer(record, at))
        found[head.group(1)] = Ending(
            "requeued" if requeued else "ended",
            ended.group(2) is not None or ended.group(5) == "done", facts.exit_code,
            facts.exit_reason, started, facts.ended, tuple(hosts.items()),
        )  # fmt: skip
    return found


#: What a ``brun`` of an ended job leaves, in one second.
_AGAIN = re.compile(rf"^({_STAMP}): Pending: Job has been requeued;?\n\1: Job is forced to run", re.MULTILINE)


def started_again(text: str) -> set[str]:
    """The jobs of a ``bhist -l`` that had ended while they waited when their last ``brun`` came: OpenLava's
    and volclava's start such a job all the same."""
    found = set()
    for record in unwrapped(text).split(_SEPARATOR):
        head, submitted = _HEAD.match(record), _SUBMITTED.search(record)
        if head is None or submitted is None:
            continue
        *_, forced = [None, *_AGAIN.finditer(record, submitted.end())]
        if forced is None:
            continue
        *_, since = [submitted.end(), *(b.end() for b in _BACK.finditer(record, 0, forced.start()))]
        waited = record[since : forced.start()]
        if _FINISHED.search(waited) is not None and _STARTED.search(waited) is None:
            found.add(head.group(1))
    return found
