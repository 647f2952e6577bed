"""The interface's process: what the configuration says becomes ways, sockets and a server."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
import uvicorn

from headway.config.serve import JwtConfig, ProxyConfig, ServeConfig, TlsConfig
from headway.errors import UserError
from headway.serve.addresses import BACKLOG, Address, address_of, bound
from headway.serve.app import make_app
from headway.serve.callers import Proxy, Ways, this_process
from headway.serve.connections import MAX_HEAD, Room, connections_in
from headway.serve.doors import ENTRANCE, doors
from headway.serve.guard import LOCAL
from headway.serve.history import History
from headway.serve.jwts import SlurmTokens
from headway.serve.secret_files import read_secret
from headway.serve.sessions import Sessions
from headway.serve.source import Source
from headway.serve.streams import Seats
from headway.serve.tokens import Tokens

#: Seconds in which requests may end when the process ends.
_GRACE = 5
#: Files beside the connections.
_FILES = 200


@dataclass(frozen=True)
class Serving:
    """What is served, and where."""

    source: Source
    settings: ServeConfig
    #: The file of own tokens; None: there is none.
    tokens: Path | None = None
    #: Print a link that lets the user of this process in, once.
    with_link: bool = False
    #: What tells of the past; None: nothing does.
    history: History | None = None

    def run(
        self,
        say: Callable[[str], None],
        running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Serve until told to end (SIGTERM, SIGINT); ``say``: prints where; ``running``: what the source does
        meanwhile. :class:`UserError` and :class:`headway.errors.Failure` as for wrong settings and addresses
        that are taken."""
        settings = self.settings
        addresses = [address_of(text) for text in settings.listen]
        self._check(addresses)
        certificate = _checked_tls(settings.tls)
        with ExitStack() as stack:
            listeners = []
            for address in addresses:
                listener = bound(address, int(settings.mode, 8))
                stack.callback(_leaver(address, listener))
                listeners.append(listener)
            addresses = [_with_port(address, one) for address, one in zip(addresses, listeners, strict=True)]
            ways = self._ways(addresses, secure=certificate is not None)
            seats = Seats(settings.limits.streams, settings.limits.streams_each)
            app = make_app(
                self.source, ways, hosts=_hosts(settings, addresses), more=doors(ways), seats=seats,
                history=self.history,
            )  # fmt: skip
            self._warn(addresses, ways)
            room = self._room(ways)
            servers, said = [], []
            for address, listener in zip(addresses, listeners, strict=True):
                tls = certificate if address.path is None else None
                servers.append((Server(configured(app, room, tls)), listener))
                said.append(self._said(address, ways, tls is not None))

            async def serve() -> None:
                async with running():
                    await _serve(servers, lambda: say("\n".join(said)), seats.over.set)

            asyncio.run(serve())

    def _check(self, addresses: Sequence[Address]) -> None:
        far = [address for address in addresses if address.is_far]
        if far and self.settings.tls.certificate is None:
            if not self.settings.plain:
                raise UserError(
                    f"serve.listen: {far[0]}: other machines reach this address, so that it needs serve.tls, "
                    "or serve.plain: true where the way to it is protected otherwise; found neither"
                )
            structlog.get_logger("headway.serve").warning(
                "tokens and answers go over the network without TLS (serve.plain)", address=str(far[0])
            )

    def _warn(self, addresses: Sequence[Address], ways: Ways) -> None:
        """Say it where no user can be known, because nothing is set up for that."""
        there = self.tokens is not None and self.tokens.exists()
        there = there or ways.jwt is not None or ways.proxy is not None
        if not there and not self.with_link and all(address.path is None for address in addresses):
            structlog.get_logger("headway.serve").warning(
                "no user can be known: make a token (headway token create), listen on a Unix socket, or "
                "print a link (--link)"
            )

    def _ways(self, addresses: Sequence[Address], secure: bool) -> Ways:
        settings = self.settings
        port = next((address.port for address in addresses if address.path is None), 0)
        return Ways(
            Tokens(self.tokens) if self.tokens is not None else None,
            _slurms(settings.jwt),
            frozenset(settings.jwt.scopes),
            _proxy(settings.proxy),
            Sessions(f"headway-{port or 'unix'}", secure),
        )

    def _room(self, ways: Ways) -> Room:
        limits = self.settings.limits
        _raise_file_limit(limits.connections + _FILES)
        shared = ways.proxy.is_peer if ways.proxy is not None else None
        room = Room(limits.connections, limits.connections_each, limits.patience)
        return room if shared is None else replace(room, shared=shared)

    def _said(self, address: Address, ways: Ways, tls: bool) -> str:
        if address.path is not None:
            return f"serving on {address}: the system says who asks"
        scheme = "https" if tls else "http"
        if not (self.with_link and address.is_loopback):
            return f"serving on {scheme}://{address}"
        word = ways.sessions.link(this_process())
        return (
            f"serving on {scheme}://{address}\nyour way in, once: {scheme}://{address}{ENTRANCE}?word={word}"
        )


def configured(app: object, room: Room, tls: TlsConfig | None) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=connections_in(room), ws="none", lifespan="off", log_config=None, access_log=False,
        # What clients send that is no HTTP is no event for the log.
        log_level="error",
        # Who asks is decided here: no header of a client's names its address.
        proxy_headers=False, server_header=False, backlog=BACKLOG, timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=tls.certificate if tls is not None else None,
        ssl_keyfile=tls.key if tls is not None else None,
    )  # fmt: skip


class Server(uvicorn.Server):
    """A server of several, which share the process's signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(
    servers: Sequence[tuple[Server, socket.socket]], say: Callable[[], None], on_end: Callable[[], None]
) -> None:
    """Until a signal comes, or one of them ends; then all end. ``say``: called when signals are heard;
    ``on_end``: when they are to end, which no stream would do by itself."""

    def end() -> None:
        on_end()
        for server, _ in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, end)
    say()
    tasks = [asyncio.ensure_future(server.serve([listener])) for server, listener in servers]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    end()
    await asyncio.gather(*tasks)


def _slurms(jwt: JwtConfig) -> SlurmTokens | None:
    if jwt.key is not None:
        return SlurmTokens.by_secret(Path(jwt.key), jwt.claim, jwt.leeway)
    if jwt.jwks is not None:
        return SlurmTokens.by_public_keys(Path(jwt.jwks), jwt.claim, jwt.leeway)
    return None


def _proxy(proxy: ProxyConfig) -> Proxy | None:
    if not (proxy.users or proxy.addresses):
        return None
    secret = b""
    if proxy.secret is not None:
        secret = read_secret(Path(proxy.secret), "serve.proxy.secret").strip()
    if proxy.addresses and len(secret) < 16:
        raise UserError(
            f"serve.proxy.secret: {proxy.secret}: expected a word of at least 16 bytes, found {len(secret)}"
        )
    return Proxy(proxy.header, proxy.users, proxy.addresses, secret, frozenset(proxy.scopes))


def _checked_tls(tls: TlsConfig) -> TlsConfig | None:
    """The files for TLS, which can be used; None: there is none."""
    if tls.certificate is None or tls.key is None:
        return None
    read_secret(Path(tls.key), "serve.tls.key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        raise UserError(f"serve.tls: {tls.certificate}, {tls.key}: cannot be used: {error}") from error
    return tls


def _hosts(settings: ServeConfig, addresses: Sequence[Address]) -> frozenset[str]:
    names = [*LOCAL, *settings.hosts, *(address.host for address in addresses)]
    if any(address.is_far for address in addresses):
        names.append(socket.gethostname())
    return frozenset(name.lower() for name in names if name)


def _with_port(address: Address, listener: socket.socket) -> Address:
    """The port that the system has chosen, if any may be."""
    return address if address.path is not None else Address(address.host, listener.getsockname()[1])


def _leaver(address: Address, listener: socket.socket) -> Callable[[], None]:
    """What closes a listener, and takes its path away if that is still its own."""
    ours = _file_at(address.path)

    def leave() -> None:
        listener.close()
        if address.path is not None and ours is not None and _file_at(address.path) == ours:
            address.path.unlink(missing_ok=True)

    return leave


def _file_at(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.lstat() if path is not None else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found is not None else None


def _raise_file_limit(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
