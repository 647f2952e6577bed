"""All jobs, asked of LSF such that what one user writes changes nothing that is read about another's job.

Which jobs exist, and whose they are, is told by ``bjobs -o "jobid user" -json``: it holds nothing that users
write. Everything else is asked of all users at once, and held against that. A working directory, a login
shell and the names of copied files keep their line breaks (seen on a volclava 2.2; names, commands and all
the rest lose them in ``bsub``, but a user that submits through LSF's library need not use ``bsub``), so a
record of another user's job may stand in one. As soon as anything looks like that (a job told of twice, a job
that does not exist, a job of another user, a line that is none), each user's jobs are asked for alone, for
some minutes: no user's words stand in another user's answer then.

A job that is submitted between the two questions is left for the next look. Where LSF cannot tell which exist
(old relatives), a job that is told of in two ways is *doubtful*: it keeps what it has and is not started.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.errors import Failure
from headway_adapters.lsf import listing
from headway_adapters.lsf.client import LsfClient, is_silence
from headway_adapters.lsf.documents import records
from headway_adapters.lsf.flavour import Flavour
from headway_adapters.lsf.listing import Facts, Parsed, Row
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.client import Unanswered
from headway_adapters.transport import Result

#: Times that a field which bjobs does not know is left out and the listing asked for again.
_FIELD_TRIES = len(listing.FIELDS)
#: How long users' jobs are asked for one user at a time after something was odd, seconds.
APART = 300.0
#: Users that are asked for in one go.
_AT_ONCE = 64
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$\\-]{0,99}")


@dataclass
class Listed:
    """What a look found out about jobs."""

    rows: dict[str, Row] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    #: Numbers of jobs that exist and could not be read.
    unread: set[str] = field(default_factory=set)


class JobsListing:
    """Asks for all jobs. Used on the looking thread."""

    def __init__(
        self, client: LsfClient, fields: tuple[str, ...], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """``fields``: the fields for ``bjobs -o ... -json``; empty: jobs are read from text."""
        self._client = client
        self._fields = fields
        self._monotonic = monotonic
        #: LSF can tell which jobs exist.
        self._owned = True
        #: Jobs that the look before told of and that did not exist.
        self._strangers: set[str] = set()
        #: Numbers of jobs that existed and that it did not tell of.
        self._absent: set[str] = set()
        self._apart_until = 0.0
        self._parsed = Parsed()

    def read(self, times: Calendar, notes: set[str]) -> Listed:
        """All jobs. Raises :class:`Failure` when LSF does not answer or talks nonsense."""
        self._parsed.begin(times.now)
        found = self._read(times, notes)
        self._parsed.end()
        return found

    def _read(self, times: Calendar, notes: set[str]) -> Listed:
        owners = self._owners()
        if owners is None:
            return self._of_all(times, notes, notes, text=True)
        if self._monotonic() >= self._apart_until:
            doubts: set[str] = set()
            try:
                found = self._of_all(times, notes, doubts, text=not self._fields)
                doubts |= self._unlike(found, owners)
            except Unanswered:
                raise
            except Failure as error:
                doubts.add(str(error))
            if not doubts:
                return found
            notes |= {f"each user's jobs are asked for separately: {doubt}" for doubt in doubts}
            self._apart_until = self._monotonic() + APART
        return self._apart(owners, times, notes)

    # ------------------------------------------------------------------ which jobs exist

    def _owners(self) -> dict[str, str] | None:
        """Number -> user of all jobs; None: this LSF cannot tell."""
        if not self._owned:
            return None
        result = self._client.run(json_argv(("jobid", "user")))
        if result.unanswered or result.too_long or is_silence(result):
            raise Unanswered(f"bjobs -o jobid: {result.complaint()}")
        if not result.ok and listing.nothing_found(result.stderr):
            return {}
        if not result.ok and not result.stdout.strip():
            self._owned = False
            return None
        return listing.read_owners(result.stdout)

    def _unlike(self, found: Listed, owners: Mapping[str, str]) -> set[str]:
        """In what a listing differs from the existing jobs; jobs that are new, or none, are taken out."""
        rows, facts = found.rows, found.facts
        numbers = {key: row.array or key for key, row in rows.items()}
        numbers |= {key: _number(key) for key in facts.keys() - rows.keys()}
        others = [key for key, row in rows.items() if owners.get(numbers[key], row.user) != row.user]
        strangers = {key for key, number in numbers.items() if number not in owners}
        doubts = {f"something imitates job {key}" for key in others[:1]}
        if lasting := strangers & self._strangers:
            doubts.add(f"something imitates job {min(lasting)}, which LSF does not have")
        self._strangers = strangers
        told = {numbers[key] for key in rows}
        if not self._fields:
            told &= {numbers[key] for key in facts}
        absent = owners.keys() - told
        if lasting := absent & self._absent:
            doubts.add(f"job {min(lasting)} is missing in the listing")
        self._absent = absent
        for key in strangers:
            rows.pop(key, None)
            facts.pop(key, None)
        return doubts

    # ------------------------------------------------------------------ listings

    def _of_all(self, times: Calendar, notes: set[str], doubts: set[str], *, text: bool) -> Listed:
        return self._of(("all",), times, notes, (doubts,), text=text)[0]

    def _of(
        self, users: Sequence[str], times: Calendar, notes: set[str], doubts: Sequence[set[str]],
        *, text: bool = True,
    ) -> list[Listed]:  # fmt: skip
        """The jobs of each of these; ``doubts`` takes what is odd in each one's answer.

        ``text``: where their JSON cannot be used they are read from text. Raises :class:`Failure` for the
        first that cannot be read.
        """
        if not self._fields:
            return [_good(listed) for listed in self._texts(users, times, doubts)]
        results = self._client.run_many([json_argv(self._fields, user) for user in users])
        if any(listing.bad_field(result.stderr) for result in results):
            # Another LSF than at the start.
            self._fields = ()
            return self._of(users, times, notes, doubts)
        found: list[Listed | Failure] = []
        parsed = self._parsed
        for user, result, odd in zip(users, results, doubts, strict=True):
            try:
                found.append(Listed(*listing.read_json_rows(_listed(result).stdout, times, odd, parsed)))
            except Unanswered:
                raise
            except Failure as error:
                if not text:
                    raise
                # One job's strange name must not blind us.
                notes.add(f"jobs are read from text, because their JSON could not be used: {error}")
                found += self._texts((user,), times, (odd,))
        return [_good(listed) for listed in found]

    def _texts(
        self, users: Sequence[str], times: Calendar, doubts: Sequence[set[str]]
    ) -> list[Listed | Failure]:
        every = [("bjobs", "-u", user, "-a", kind) for user in users for kind in ("-w", "-UF")]
        results = [_listed(result) for result in self._client.run_many(every)]
        found: list[Listed | Failure] = []
        for wide, long, odd in zip(results[::2], results[1::2], doubts, strict=True):
            try:
                rows = listing.read_wide_rows(wide.text, times, odd, self._parsed)
                found.append(Listed(rows, listing.read_long(long.text, times, odd, self._parsed)))
            except Failure as error:
                found.append(error)
        return found

    def _apart(self, owners: Mapping[str, str], times: Calendar, notes: set[str]) -> Listed:
        """All jobs, each user's asked for alone; of an answer only what is that user's counts."""
        whole = Listed()
        users = sorted(set(owners.values()))
        nameless = {user for user in users if _USER.fullmatch(user) is None}
        whole.unread |= {number for number, user in owners.items() if user in nameless}
        if nameless:
            notes.add(
                "jobs of a user with an unusable name cannot be asked for separately and stay as they were"
            )
        users = [user for user in users if user not in nameless]
        for at in range(0, len(users), _AT_ONCE):
            some = users[at : at + _AT_ONCE]
            doubts: list[set[str]] = [set() for _ in some]
            try:
                answers: list[Listed | None] = list(self._of(some, times, notes, doubts))
            except Unanswered:
                raise
            except Failure:
                answers = [self._of_one(user, times, notes) for user in some]
            for user, answer in zip(some, answers, strict=True):
                mine = {number for number, owner in owners.items() if owner == user}
                if answer is None:
                    whole.unread |= mine
                    continue
                whole.rows |= {k: row for k, row in answer.rows.items() if _number(k) in mine}
                whole.facts |= {k: facts for k, facts in answer.facts.items() if _number(k) in mine}
            for user, odd in zip(some, doubts, strict=True):
                notes |= {f"jobs of {user}: {doubt}" for doubt in odd}
        if whole.unread and not whole.rows:
            raise Failure("bjobs: no record of the listing can be read")
        return whole

    def _of_one(self, user: str, times: Calendar, notes: set[str]) -> Listed | None:
        """The jobs of a user; None when they cannot be read, which concerns no other user."""
        try:
            return self._of((user,), times, notes, (set(),))[0]
        except Unanswered:
            raise
        except Failure as error:
            notes.add(f"jobs of {user} cannot be read and stay as they were: {error}")
            return None


def _number(job_id: str) -> str:
    return job_id.partition("[")[0]


def _good(listed: Listed | Failure) -> Listed:
    if isinstance(listed, Failure):
        raise listed
    return listed


# ---------------------------------------------------------------------- the commands


def known_fields(client: LsfClient, flavour: Flavour) -> tuple[str, ...]:
    """The fields that ``bjobs -o ... -json`` knows here, if they say all; else none.

    volclava looks at the fields only when it has a job to show, so its empty listing proves nothing.
    Raises :class:`Unanswered`.
    """
    fields: tuple[str, ...] = listing.FIELDS
    for _ in range(_FIELD_TRIES):
        result = client.run(json_argv(fields))
        if result.timed_out or is_silence(result):
            raise Unanswered(f"bjobs -json: {result.complaint()}")
        unknown = listing.bad_field(result.stderr)
        if not unknown or unknown not in fields:
            known = _keys(result)
            if known is None and flavour.ibm and result.ok and result.stdout.lstrip().startswith(b"{"):
                # A job of now spoils it, which need not be so later.
                return fields
            if known is None or not (known or flavour.ibm):
                return ()
            return fields if not known or known >= listing.NEEDED else ()
        if unknown in listing.NEEDED:
            return ()
        fields = tuple(name for name in fields if name != unknown)
    return ()


def json_argv(fields: Iterable[str], user: str = "all") -> tuple[str, ...]:
    """The command that lists a user's jobs in JSON."""
    return ("bjobs", "-u", user, "-a", "-o", " ".join(fields), "-json")


def _keys(result: Result) -> frozenset[str] | None:
    """The fields of the first record of a JSON listing, in lower case; none: it is empty (with status
    255 then); None: this is no listing."""
    try:
        found = records(result.stdout, "bjobs")
    except Failure:
        return None
    return frozenset(key.lower() for key in found[0]) if found else frozenset()


def _listed(result: Result) -> Result:
    """A listing of jobs, also one of none; raises :class:`Unanswered` for anything else."""
    if result.ok:
        return result
    empty = not result.timed_out and not result.too_long and not is_silence(result)
    if empty and (listing.nothing_found(result.stderr) or _keys(result) is not None):
        return result
    raise Unanswered(f"{' '.join(result.argv[:2])}: {result.complaint()}")
