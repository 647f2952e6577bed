"""When the batch system is looked at, on a thread of its own, and what a look that fails means.

Looks come every ``poll_interval``, sooner after a start, and with growing pauses while the system does not
answer. A look that began before something was changed is vain, since it may show the time before.
"""

from __future__ import annotations

import inspect
import math
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic

from headway.adapter import Check, Outage
from headway.errors import Failure, HeadwayError
from headway_adapters.polling.bell import Bell
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.look import DetailT, Look
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.polling.system import BatchSystem, Pace

_LONGEST_BACKOFF = 30.0
#: How long a deadline that has passed waits for a look that is under way.
_PATIENCE = 1.0
#: After so many looks in a row that were vain, because something was changed meanwhile, nothing is told, and
#: so nothing is decided, until the next one is done.
_VAIN = 2
#: Beside a few pauses between looks: a system that answers is read more often than this, seconds.
_LONGEST_LOOK = 120.0


def first_look(system: BatchSystem[DetailT, Any]) -> Look[DetailT]:
    """A look on the caller's thread. Raises :class:`headway.errors.Failure` also for output that no reader
    foresaw; it names the adapter's class and where in its file, and deeper, that happened."""
    try:
        return system.look(None)
    except HeadwayError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == inspect.getsourcefile(type(system))]
        places = dict.fromkeys(f"{frame.filename}, line {frame.lineno}" for frame in (*own[-1:], frames[-1]))
        where = "; ".join(places)
        found = f"{type(error).__name__}: {error}"
        raise Failure(f"{type(system).__name__}.look ({where}) failed with {found}") from error


class Looker(Generic[DetailT]):
    """The looks of one adapter, one at a time. Times are on the monotonic clock where nothing is said."""

    def __init__(
        self, system: str, look: Callable[[Snapshot | None], Look[DetailT]], commands: Commands, bell: Bell,
        pace: Pace, *, log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``system``: its word in the log. ``clock``: absolute seconds."""
        self._system = system
        self._look = look
        self._commands = commands
        self._bell = bell
        self._pace = pace
        self._log = log
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"{system}-look")
        self._looking: Future[Look[DetailT]] | None = None
        #: What had been changed when it began.
        self._changes = 0
        #: When the last one began.
        self.began = 0.0
        self._next = 0.0
        #: Looks in a row that show the time before a change.
        self._vain = 0
        self._confirm_pause = pace.confirm_interval
        self._down_since: float | None = None
        self._down: Outage | None = None
        self._backoff = 0.0
        #: When a look was taken in last.
        self._read = -math.inf

    # ------------------------------------------------------------------ a look

    @property
    def is_looking(self) -> bool:
        """Whether a look is under way, or done and not taken in."""
        return self._looking is not None

    @property
    def is_done(self) -> bool:
        """Whether a look is done and not taken in."""
        return self._looking is not None and self._looking.done()

    def begin_if_due(self, now: float, before: Snapshot | None) -> None:
        """Begin a look if it is time to. ``before``: what the look before showed."""
        if self._looking is not None or now < self._next:
            return
        self._changes = self._commands.changes
        self.began = time.monotonic()
        self._looking = self._thread.submit(self._look, before)
        self._looking.add_done_callback(lambda _: self._bell.stir())

    def has_looked(self, look: Look[DetailT]) -> None:
        """This look was made elsewhere: it is the first."""
        self._looking = Future()
        self._looking.set_result(look)
        self._changes = self._commands.changes

    def finish(self, answered: Callable[[], None]) -> Look[DetailT] | None:
        """The look that is done; None for one that failed or is vain. ``answered`` is called when it ends an
        outage. Raises :class:`headway.errors.HeadwayError` that is no failure, such as a user's mistake."""
        assert self._looking is not None
        looking, self._looking = self._looking, None
        try:
            look = looking.result()
        except Failure as error:
            self._outage(error)
            return None
        except HeadwayError:
            raise
        except Exception as error:
            # Output that no reader foresaw is no news about jobs, and no reason to end.
            found = f"{type(error).__name__}: {error}"
            if self._down_since is None:
                unforeseen = "a look could not be read, which is a mistake in headway"
                self._log.error(unforeseen, error=found, exc_info=error)
            self._outage(Failure(f"its answer could not be read ({found})"))
            return None
        if self._changes != self._commands.changes:
            # Something was changed since it began: it may show the time before.
            self._next = 0.0
            self._vain += 1
            return None
        self._vain = 0
        self._read = time.monotonic()
        if self._down_since is not None:
            seconds = round(time.monotonic() - self._down_since, 1)
            self._log.info(f"{self._system} answers again", seconds=seconds)
            self._down_since = self._down = None
            answered()
        return look

    def _outage(self, error: Failure) -> None:
        now = time.monotonic()
        self._vain = 0
        if self._down_since is None:
            self._down_since = now
            self._backoff = min(1.0, self._pace.poll_interval)
            self._down = Outage(self._system, self._clock(), str(error))
            self._log.error(f"{self._system} does not answer; waiting for it", error=str(error))
        self._next = now + self._backoff
        self._backoff = min(self._backoff * 2, _LONGEST_BACKOFF)

    @property
    def outage(self) -> Outage | None:
        """That the batch system does not answer now. On any thread."""
        return self._down

    def vital_sign(self) -> Check:
        """Whether looks are taken in. On any thread."""
        if self._read == -math.inf:
            return Check("last look", True, f"{self._system} was not read yet", known=False)
        ago = time.monotonic() - self._read
        ok = ago <= _LONGEST_LOOK + 3 * self._pace.poll_interval
        remedy = "the log says why; headway check asks the batch system step by step"
        return Check("last look", ok, f"{self._system} was read {ago:.0f} s ago", remedy)

    # ------------------------------------------------------------------ when the next one is

    def schedule(self, *, starts_on_their_way: bool) -> None:
        """A look was taken in: say when the next one is."""
        pause = self._pace.poll_interval
        if starts_on_their_way:
            pause = min(pause, self._confirm_pause)
            self._confirm_pause = min(self._confirm_pause * 2, pause * 2, self._pace.poll_interval)
        self._next = time.monotonic() + pause

    def at_once(self) -> None:
        """The next look is due."""
        self._next = 0.0

    def changed(self) -> None:
        """Something was changed: look soon."""
        self._next = min(self._next, time.monotonic() + self._pace.confirm_interval)

    def confirm_soon(self) -> None:
        """Look soon whether a start happened, and from then on with growing pauses."""
        self._confirm_pause = self._pace.confirm_interval
        self.changed()

    def hold_off(self) -> None:
        """A system that does not answer is not asked sooner because decisions came."""
        if self._down_since is not None:
            self._next = max(self._next, time.monotonic() + self._pace.confirm_interval)

    # ------------------------------------------------------------------ how long to wait for it

    @property
    def is_vain(self) -> bool:
        """The looks of late were vain: nothing is told until the look under way is done."""
        return self._looking is not None and self._vain >= _VAIN

    @property
    def may_answer_soon(self) -> bool:
        """A look is under way, and the system was in order until now."""
        patient = time.monotonic() < self.began + _PATIENCE
        return self._looking is not None and self._down_since is None and patient

    def pause(self, now: float, left: float) -> float:
        """Seconds to sleep when a deadline is ``left`` seconds away: until the next look is due, and past
        the deadline a little for a look that is under way."""
        pause = math.inf if self._looking is not None else self._next - now
        return min(pause, left if left > 0 else self.began + _PATIENCE - now)

    def close(self) -> None:
        """Wait for the look that is under way."""
        self._thread.shutdown(wait=True, cancel_futures=True)
