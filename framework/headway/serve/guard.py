"""What holds of each request, whoever asks: the host's name, other sites, and the headers of answers.

A browser sends requests that another site's page has made, with the cookie, or through the tunnel, of the
user that looks at that page. So a request must be for a host that this is (a name that was bent to this
address is not), and of no other site; a write must be JSON, which no form of another site can send.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.serve.problems import problem
from headway.serve.tags import KEPT

#: What a browser may do with the page: nothing comes from another host, and no script stands in the page.
POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
#: This machine, as it calls itself.
LOCAL = ("localhost", "127.0.0.1", "::1")
_READS = {"GET", "HEAD"}


def host_of(header: str) -> str:
    """The name in a header ``Host``, without the port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower().rstrip(".")


@dataclass(frozen=True)
class Guard:
    """Lets requests through to ``app``, or refuses them."""

    app: ASGIApp
    #: Names of this machine.
    hosts: Collection[str] = LOCAL
    #: Paths that begin so are data: they are for pages of this host alone, and are not kept by browsers.
    data: str = "/v1"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # There are no web sockets here.
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        of_data = scope["path"] == self.data or scope["path"].startswith(self.data + "/")

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    sent.setdefault(name, value)
                sent.setdefault("cache-control", "no-store" if of_data else KEPT)
            await send(message)

        refused = self._refusal(scope, headers, of_data)
        if refused is not None:
            await problem(*refused)(scope, receive, marked)
        else:
            await self.app(scope, receive, marked)

    def _refusal(self, scope: Scope, headers: Headers, of_data: bool) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_of(hosts[0]) not in self.hosts:
            return 421, "this machine is not called so (serve.hosts)"
        if "\0" in scope["path"]:
            return 400, "expected a path without zero bytes"
        site = headers.get("sec-fetch-site", "same-origin")
        writes = scope["method"] not in _READS
        if (of_data or writes) and site not in ("same-origin", "none"):
            return 403, "this request was made by a page of another site"
        if not writes:
            return None
        origins = headers.getlist("origin")
        if origins and (len(origins) > 1 or origins[0].partition("://")[2] != hosts[0]):
            return 403, "this request was made by a page of another site"
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "expected a request with the content type application/json"
        return None
