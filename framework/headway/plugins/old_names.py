"""Attributes of plugins of 0.1, as traits and hooks: they are served for one more version, with a
warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from headway.decisions import PowerUp
from headway.plugins.hook_names import EXPLAINED, hook_names, is_marked, warn_author
from headway.plugins.traits import Again, Required, Study, Traits
from headway.state import Job
from headway.view import View

#: The attribute of 0.1 -> what says it now.
REPLACED = {
    "needs": "trait needs",
    "gives": "trait gives",
    "wakes": "trait uses=(PowerUp,)",
    "needs_nodes": "trait requires={'nodes'}",
    "needs_energy": "trait requires={'energy'}",
    "needs_lending": "trait requires={'lending'}",
    "needs_policy": "trait requires={'policy'}",
    "job_words": "trait words",
    "observes": "trait observes",
    "ask_always": "trait ask_again=Again.ANY_EVENT",
    "places_by_room": "trait ask_again=Again.ROOM",
    "placement_changes": "trait changes_at",
    "placement_kind": "trait same_answer",
    "bar_kind": "trait same_answer",
    "promises": "trait checkpoint='promises'",
    "recounts": "trait checkpoint='counts'",
    "paper": "trait paper",
    "backfills": "trait study",
    "uses_estimates": "trait study",
    "speedup": "trait study",
    "levels": "trait study",
    "tunable": "trait study",
    "promised": "hook promised",
    "bar_jobs": "hook bar_jobs",
    "why_not_placed": "hook explain",
    "why_predicted": "hook explain",
    "why_not_predicted": "hook explain",
    "why_waiting": "hook explain",
    "why_suspended": "hook explain",
    "by_booking": "nothing: it is not needed",
    "passes_over": "nothing: it is not needed",
    "unused": "nothing: it is not needed",
    "lacks": "the hook startup, which may raise UserError",
    "goes_on": "hook restore, argument counting_on",
}

#: Attributes of 0.1 that are served as hooks, which a record of traits does not replace.
_HOOKS = {"bar_jobs", "promised", *EXPLAINED.values()}


def old_traits(plugin: Any) -> Traits:
    """The traits that a plugin, or its class, without a record of them says by attributes of 0.1."""
    old = old_names(plugin)
    if not old:
        return Traits()

    def said(name: str, default: Any = None) -> Any:
        return getattr(plugin, name, default)

    made = not isinstance(plugin, type)
    kinds = [said(name) for name in ("placement_kind", "bar_kind") if made and name in old]
    again = Again.ANY_EVENT if said("ask_always") else Again.DOMAIN
    return Traits(
        needs=tuple(said("needs", ())),
        uses=(PowerUp,) if said("wakes") else (),
        gives=tuple(said("gives", ())),
        requires=frozenset(word for word in get_args(Required) if said(f"needs_{word}") is True),
        words=frozenset(said("job_words", ())) if made else frozenset(),
        observes=said("observes") if made else None,
        ask_again=Again.ROOM if made and said("places_by_room") else again,
        changes_at=said("placement_changes") if made else None,
        same_answer=kinds[0] if kinds else None,
        checkpoint="promises" if said("promises") else "counts" if said("recounts") else "state",
        study=Study(
            backfills=bool(said("backfills", False)),
            estimates=said("uses_estimates"),
            speedup=said("speedup", ""),
            levels=said("levels", 1),
            tunable=said("tunable") or ("", range(0)),
        ),
        paper=said("paper", ""),
    )


def warn_of_old_names(plugin: Any, of: str) -> None:
    """Warn the author of a plugin of what replaces its attributes of 0.1, in one sentence each; ``of`` leads
    the message."""
    record = _has_record(plugin)
    for name in old_names(plugin):
        until = "has no effect beside `traits`" if record and name not in _HOOKS else "ends with 0.3"
        text = f"{of}: `{name}`, an attribute of 0.1, {until}; what replaces it: {REPLACED[name]}"
        warn_author(type(plugin), text, FutureWarning)


def old_implementations(plugin: Any) -> dict[str, Callable[..., Any]]:
    """Hooks of today by name that a plugin of 0.1 has under other names; they take all arguments."""
    old = old_names(plugin)
    found: dict[str, Callable[..., Any]] = {}
    if "bar_jobs" in old:
        found["bar_jobs"] = plugin.bar_jobs
    if "promised" in old:
        found["promised"] = lambda: plugin.promised
    if any(name in old for name in EXPLAINED.values()):

        def explain(job: Job, question: str, view: View, clock: Callable[[float], str]) -> str | None:
            why = getattr(plugin, EXPLAINED[question], None)
            if why is None:
                return None
            more = {"placement": (view,), "waiting": (view,), "suspension": (clock,)}.get(question, ())
            return str(why(job, *more)) or None

        found["explain"] = explain
    return found


def old_names(plugin: Any) -> list[str]:
    """The attributes of 0.1 that a plugin, or its class, has and that are no hooks of today.

    Beside a record of traits only the class is looked at: an instance calls its own data as it likes.
    """
    record = _has_record(plugin)
    read = type(plugin) if record and not isinstance(plugin, type) else plugin
    # A method that has the name of a hook of today is a hook without its mark there.
    today = {*hook_names()} if record else set()
    if is_marked(plugin, "explain"):
        today.update(EXPLAINED.values())
    return [
        name for name in REPLACED if name not in today and hasattr(read, name) and not is_marked(read, name)
    ]


def _has_record(plugin: Any) -> bool:
    return getattr(plugin, "traits", None) is not None
