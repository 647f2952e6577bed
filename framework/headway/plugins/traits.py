"""What a plugin says of itself beside its hooks: one record, its *traits*.

A class has them as the attribute ``traits``; an instance may have its own, where its options decide::

    class Patient:
        traits = Traits(ask_again=Again.DOMAIN, study=Study(backfills=True))

The defaults are safe and slow. :mod:`headway.plugins.contract` reads them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from headway.decisions import Decision
from headway.errors import UserError, nearest
from headway.events import Event
from headway.state import Job

#: What the cluster or the run must have: processors with names; an energy profile; suspended jobs whose
#: processors other jobs can have; the batch system's word on its site's policy (``SitePolicyChanged``).
Required = Literal["nodes", "energy", "lending", "policy"]
#: What a plugin's checkpoint holds.
_Held = Literal["state", "promises", "counts"]


class Again(enum.Enum):
    """Ask again when: after which events a plugin that orders, books, starts or places may answer otherwise.

    A moment at which nothing happens is the plugin's to tell: ``state.wake_at(time, pool)``.
    """

    #: Any event, wherever it happened. A policy is asked at each arrival in its domain. For a plugin that is
    #: no policy, each event has every queue looked at from scratch.
    ANY_EVENT = "any event"
    #: What happens in the domain, but for arrivals behind the queue's tail that cannot start now.
    DOMAIN = "domain"
    #: Whether the plugin places a job at all depends only on the offer's nodes, the jobs on the other nodes,
    #: the request and the value of ``same_answer``. A job is tried again when something was taken or given
    #: back since a job of the same shape and value found no place.
    ROOM = "room"


class TraitError(UserError):
    """Traits that cannot be; the message names the field, but not the plugin."""


class _Record:
    """A record that refuses a misspelt field with a hint."""

    def __new__(cls, *_: Any, **given: Any) -> Self:
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for name in given:
            if name not in known:
                raise TraitError(f"{cls.__name__}: no field is called {name!r}.{nearest(name, known)}")
        return super().__new__(cls)


@dataclass(frozen=True)
class Study(_Record):
    """What an experiment must know of a plugin (:mod:`headway.experiment.rulebook`)."""

    #: It lets jobs overtake other jobs.
    backfills: bool = False
    #: It reads users' estimates; None: it may, if it has hooks that look at them.
    estimates: bool | None = None
    #: How jobs run on more or fewer processors: "linear", or a law's name; "": they do not.
    speedup: str = ""
    #: Levels of multiprogramming; 1: a processor has one process.
    levels: int = 1
    #: The option that is there to be tuned, and its values; "": none.
    tunable: tuple[str, range] = ("", range(0))


@dataclass(frozen=True, kw_only=True)
class Traits(_Record):
    """The traits of one plugin. Each field has a default."""

    #: Decision types that the cluster's adapter must be able to carry out.
    needs: tuple[type[Decision], ...] = ()
    #: Decision types that it makes where the cluster can carry them out; it works without them.
    uses: tuple[type[Decision], ...] = ()
    #: Decision types that a real cluster can carry out with the plugin's help, such as Migrate.
    gives: tuple[type[Decision], ...] = ()
    #: What the cluster or the run must have, see :data:`Required`.
    requires: frozenset[Required] = frozenset()
    #: Names of jobs' attributes that its options name: users can say them with their jobs.
    words: frozenset[str] = frozenset()
    #: Types of the events that the hook ``observe`` is shown; None: all.
    observes: tuple[type[Event], ...] | None = None
    #: After which events it may answer otherwise.
    ask_again: Again = Again.ANY_EVENT
    #: The moments (absolute seconds) at which ``place`` answers otherwise about the job though nothing
    #: happens, such as a wish that is given up. The job is booked at such a moment if it fits then.
    changes_at: Callable[[Job], Sequence[float]] | None = None
    #: A value of all that ``bar_job`` and ``place`` look at of a job beside its size (``bar_job``) or request
    #: (``place``). Jobs with the same value have the same answer, and the plugin is asked about one of them.
    #: The value None: the answer follows from more. For barriers asked when a job arrives or changes, and
    #: about all jobs when the plugin calls ``state.outdate_kinds()``.
    same_answer: Callable[[Job], Hashable] | None = None
    #: What the hook ``checkpoint`` holds: "state"; "promises" to jobs (hook ``promised``): it is saved before
    #: the decisions of a cycle that changed them have an effect, and ``headway explain`` goes by it; "counts"
    #: of the events that ``observe`` is shown: after a kill the next run counts on from the checkpoint
    #: (``restore`` with ``counting_on``), and restores what has come out. It must count nothing for being
    #: shown a submission twice.
    checkpoint: _Held = "state"
    #: What an experiment must know.
    study: Study = Study()
    #: The reference of the paper that it implements.
    paper: str = ""

    def __post_init__(self) -> None:
        """Raise :class:`TraitError` for a value that a field cannot have: a typo must not lose a promise."""
        for name, kind in (("needs", Decision), ("uses", Decision), ("gives", Decision), ("observes", Event)):
            found = getattr(self, name)
            if not (found is None and name == "observes") and not _types(found, kind):
                raise _wrong(name, f"a tuple of {kind.__name__} types", found)
        for name, known in (("requires", get_args(Required)), ("words", None)):
            found = getattr(self, name)
            if not isinstance(found, set | frozenset) or not all(isinstance(word, str) for word in found):
                raise _wrong(name, "a set of texts such as {" + repr((known or ["image"])[0]) + "}", found)
            if known is not None and (unknown := sorted(found - set(known))):
                raise _wrong(name, f"of {', '.join(known)}", ", ".join(unknown))
        if not isinstance(self.ask_again, Again):
            raise _wrong("ask_again", "one of " + ", ".join(map(str, Again)), self.ask_again)
        if self.checkpoint not in get_args(_Held):
            raise _wrong("checkpoint", "one of " + ", ".join(get_args(_Held)), self.checkpoint)
        for name in ("changes_at", "same_answer"):
            if (function := getattr(self, name)) is not None and not callable(function):
                raise _wrong(name, "a function of a job", function)
        if not isinstance(self.study, Study):
            raise _wrong("study", "a headway.plugins.Study", self.study)
        if not isinstance(self.paper, str):
            raise _wrong("paper", "a text", self.paper)


def _types(found: Any, kind: type) -> bool:
    return isinstance(found, tuple) and all(isinstance(one, type) and issubclass(one, kind) for one in found)


def _wrong(name: str, expected: str, found: object) -> TraitError:
    return TraitError(f"trait `{name}`: expected {expected}, found {found!r}")
