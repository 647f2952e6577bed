"""What is sent for what was found."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from headway.serve.problems import json, problem
from headway.service.protocol import Reply

#: What became of a question -> status code.
_CODES = {"accepted": 200, "unknown": 404, "refused": 403, "failed": 503}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent for a resource."""

    #: The time of the cycle that this is the state after (absolute seconds).
    as_of: float | None
    data: msgspec.Raw
    #: What is missing, or may be; "" if nothing is.
    remark: str = ""
    #: Since when the daemon has not answered (absolute seconds), if this is the last that is known of it.
    silent_since: float | None = None


def told(reply: Reply) -> Response:
    """The answer, or why there is none."""
    found = next((one for one in (reply.found, reply.status, reply.metrics) if one is not None), None)
    if reply.outcome != "accepted" or found is None:
        return problem(_CODES.get(reply.outcome, 503), reply.reason)
    data = msgspec.Raw(msgspec.json.encode(found))
    return json(Answer(reply.as_of, data, reply.reason, reply.silent_since))
