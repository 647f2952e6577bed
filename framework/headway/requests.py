"""Answers to requests of users to a running scheduler.

A request enters the scheduler as an event of the next cycle, so it is journalled and replayed like
everything else; a plugin decides on it and tells what became of it (hook ``answer``).
:mod:`headway.engine` takes them from whoever brings them (:mod:`headway.service`: through a socket).
"""

from __future__ import annotations

import msgspec

from headway.decisions import Decision


class Answer(msgspec.Struct, frozen=True):
    """What a plugin answers to a request, in the step in which it was served.

    The answer holds only if the cluster accepts all ``decisions``, which the plugin made in this step;
    otherwise the user is told the cluster's refusal.
    """

    #: "accepted", "in part", "refused" or "waiting".
    outcome: str
    reason: str = ""
    decisions: tuple[Decision, ...] = ()
