"""What giving a cluster back has in common, whichever batch system it is: the heartbeat, and a dry run."""

from __future__ import annotations

import abc
import time
from collections.abc import Sequence
from typing import Any

from headway.adapter import GivingBack
from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.heartbeat import HeartbeatOptions, Word, heartbeat_file, is_silent, read_word


class PollingGivingBack(GivingBack, abc.ABC):
    """Gives a batch system back through its commands."""

    def __init__(self, options: HeartbeatOptions, *, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self._patience = options.patience
        self._file = heartbeat_file(options)
        #: What the heartbeat says, if it was found to be silent.
        self._silence: str | None = None
        self.client = self.connect(options, read_only=dry_run)

    @abc.abstractmethod
    def connect(self, options: Any, *, read_only: bool) -> CommandClient:
        """What runs the commands; also remembers the options."""

    def change(self, argv: Sequence[str]) -> str:
        """Run a command that changes something, but not in a dry run; what went wrong, "" if nothing did."""
        if self.dry_run:
            return ""
        (answer,) = self.client.change_all([argv])
        if answer is None:
            return "no answer"
        return "" if answer.ok else answer.complaint()

    def is_silent(self) -> bool | None:
        if self._file is None or not self._patience:
            return None
        text = self._file.read()
        if text != self._silence:
            self._silence = text if is_silent(self._file, self._patience) else None
        return self._silence is not None

    def was_heard(self) -> bool:
        return self._file is not None and read_word(self._file.read()) is not None

    def stand_down(self) -> None:
        if self._file is not None and not self.dry_run:
            self._file.write(Word(False, "", 0, int(time.time()), 0).text())

    def close(self) -> None:
        self.client.close()
        if self._file is not None:
            self._file.close()
