"""Whether PBS's own scheduler confirms reservations at present.

Each request waits for it, and meanwhile nothing else is asked of that PBS. So after a request that was not
confirmed in time no other is made for a while: a search for metajobs makes many.
"""

from __future__ import annotations

from headway.adapter import Outcome

#: Parts of what is printed, with exit code 0, of a reservation that PBS's scheduler does not confirm in time.
UNCONFIRMED = (" UNCONFIRMED", "wait period expired")
#: Seconds in which no other reservation is asked for.
_QUIET = 30.0


class Confirmations:
    """What became of the last request for a reservation."""

    def __init__(self) -> None:
        #: When a reservation may be asked for again, absolute seconds.
        self._again = float("-inf")

    def why_not(self, now: float) -> str:
        """Why no reservation is asked for now; "" if one is."""
        if now >= self._again:
            return ""
        return (
            "PBS's scheduler did not confirm a reservation in time; it is asked again in "
            f"{self._again - now:.0f} s (is pbs_sched running?)"
        )

    def heard(self, outcome: Outcome, now: float) -> None:
        """What became of a request."""
        if not outcome.accepted and any(word in outcome.message for word in UNCONFIRMED):
            self._again = now + _QUIET
