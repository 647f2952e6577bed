"""Who asks: by the way the request came."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from starlette.requests import Request

from headway.serve.source import Caller


@dataclass(frozen=True)
class OneUser:
    """Everybody that can connect is the user of this process: on a loopback port of one's own machine."""

    user: str

    @classmethod
    def of_this_process(cls) -> OneUser:
        return cls(pwd.getpwuid(os.geteuid()).pw_name)

    async def caller(self, request: Request) -> Caller | None:
        return Caller(self.user, frozenset({"read", "user", "operator"}), itself=True)
