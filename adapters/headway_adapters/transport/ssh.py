"""Commands on another machine, through one SSH connection that is kept.

How it behaves, and why:

- The server's host key is verified on every machine of the way, always
  (:mod:`headway_adapters.transport.host_keys`); keys alone log in, never a password.
- One connection carries all commands, each in a session (channel) of its own, no more at a time
  than ``max_sessions``; where the server allows fewer, the others wait for one to end. A connection
  that broke is made anew for the next command; one that cannot be made is not tried again before a
  pause that doubles up to 30 s, and until then every command fails with the same message.
- A command is one line of quoted words behind ``exec env``, which sets the environment: servers
  refuse the protocol's own way to do so unless they are configured for it. At each connection one
  command proves that the login shell gives quoted words back unchanged, and shows the environment
  there, from which variables are taken away by name.
- The channel of a command that takes too long, or writes too much, is closed. That alone does not
  end the command over there, it ends when it writes next. So it runs under ``timeout`` (coreutils),
  which kills it with all that it started a second later, also when the connection is gone by then.
  Where that program is missing commands run without it.
- A connection that ends while a command runs gives a result that is ``cut``: it is unknown what the
  command did. So does a command that was killed by a signal over there.
"""

from __future__ import annotations

import getpass
import logging
import math
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import paramiko

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.transport.base import Result, Transport
from headway_adapters.transport.host_keys import HostKeys, fingerprint
from headway_adapters.transport.identities import Identity, described, identities
from headway_adapters.transport.options import Hop, SshOptions
from headway_adapters.transport.quoting import quote

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
#: From a refused session to the next attempt, if none ends before: it doubles up to the second. A
#: server may need a moment to count a session as ended.
_REFUSED_PAUSES = (0.02, 1.0)
#: Data that is not acknowledged for as long as this many signs of life ends the connection.
_PATIENCE = 3
_VARIABLE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What a shell could misread, in one word.
_PROBE = "HEADWAY_PROBE=a'b\"c $HOME `id` $(id) \\n \\\\ !! * ? [a] ~ ; & | < > ( ) { } # é %"


class _Lost(Exception):
    """No command can be started on this connection any more; this command was not started."""


class SshTransport(Transport):
    """Runs commands on another machine. See the module's text."""

    def __init__(
        self,
        options: SshOptions,
        *,
        environment: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        bin_dir: str | None = None,
        output_limit: int = 1 << 30,
        workers: int = 8,
    ) -> None:
        """As :class:`headway_adapters.transport.local.LocalTransport`, on ``options.host``.

        Raises :class:`Failure` for an environment that cannot be said.
        """
        self._options = options
        self.workers = workers
        self.user = options.user or getpass.getuser()
        self.where = f"{self.user}@{options.target.address}"
        self._environment = {"LC_ALL": "C", **(environment or {})}
        for name in self._environment:
            if _NAME.fullmatch(name) is None:
                raise Failure(f"{name!r} cannot be the name of an environment variable")
        self._without = tuple(without)
        self._bin_dir = bin_dir
        self._limit = output_limit
        self._connecting = threading.Lock()
        self._link: _Link | None = None
        self._trouble: Failure | None = None
        self._pause = 0.0
        self._not_before = 0.0
        self._closed = False

    # ------------------------------------------------------------------ the connection

    def _connection(self) -> _Link:
        """The connection; made if there is none. Raises :class:`Failure`."""
        with self._connecting:
            if self._closed:
                raise Failure(f"{self.where}: this connection is closed")
            if self._link is not None:
                if self._link.alive:
                    return self._link
                self._link.close()
                self._link = None
            left = self._not_before - time.monotonic()
            if self._trouble is not None and left > 0:
                raise Failure(f"{self._trouble} (tried again in {math.ceil(left)} s)") from self._trouble
            try:
                link = _Link(self._options, self.user, self._without, self._limit)
            except Failure as error:
                self._trouble = error
                self._pause = min(max(_FIRST_PAUSE, self._pause * 2), _LONGEST_PAUSE)
                self._not_before = time.monotonic() + self._pause
                raise
            self._trouble, self._pause = None, 0.0
            self._link = link
        if self._closed:
            link.close()
            raise Failure(f"{self.where}: this connection is closed")
        return link

    def _leave(self, link: _Link) -> None:
        """Use a connection no more; what still runs on it may end there."""
        with self._connecting:
            if self._link is link:
                self._link = None
        link.retire()

    # ------------------------------------------------------------------ commands

    def _program(self, program: str) -> str:
        if not program or program.startswith("-") or "=" in program:
            raise Failure(f"{program!r} cannot be the name of a program")
        return program if self._bin_dir is None else f"{self._bin_dir.rstrip('/')}/{program}"

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        return self._run(argv, None, timeout)

    def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
        return self._run(argv, given, timeout)

    def _run(self, argv: Sequence[str], given: bytes | None, timeout: float) -> Result:
        quote(argv)
        program = self._program(argv[0])
        for attempt in (1, 2):
            link = self._connection()
            settings = [f"{name}={value}" for name, value in self._environment.items()]
            removed = [word for name in link.unwanted for word in ("-u", name)]
            limit = ("timeout", "-s", "KILL", str(math.ceil(timeout) + 1)) if link.can_limit else ()
            line = b"exec " + quote(["env", *removed, *settings, *limit, program, *argv[1:]])
            try:
                result = link.run(tuple(argv), line, given, timeout)
            except _Lost as error:
                # Nothing was started yet: once more, on a new connection.
                self._leave(link)
                if attempt == 2:
                    raise Failure(f"{self.where}: {error}") from error
                continue
            if result.rc in (126, 127) and result.stderr.startswith(("env: ", "timeout: ")):
                looked = self._bin_dir or f"PATH of {self.user} there"
                said = result.stderr.strip().splitlines()[0]
                raise Failure(
                    f"the program {argv[0]!r} is not installed on {self._options.host} "
                    f"(looked in {looked}; {said})"
                )
            return result
        raise AssertionError("the second attempt returns or raises")

    def run_many(self, argvs: Sequence[Sequence[str]], timeout: float) -> list[Result]:
        """As :meth:`Transport.run_many`. Raises :class:`Failure` only if no command was run: when
        some were, the others are results that were ``cut``."""
        if len(argvs) < 2:
            return [self.run(argv, timeout) for argv in argvs]

        def one(argv: Sequence[str]) -> Result | Failure:
            try:
                return self.run(argv, timeout)
            except Failure as error:
                return error

        with ThreadPoolExecutor(min(self.workers, len(argvs)), thread_name_prefix="ssh") as pool:
            done = list(pool.map(one, argvs))
        failures = [answer for answer in done if isinstance(answer, Failure)]
        if len(failures) == len(done):
            raise failures[0]
        return [
            _cut(tuple(argv), str(answer), 0.0) if isinstance(answer, Failure) else answer
            for argv, answer in zip(argvs, done, strict=True)
        ]

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        try:
            link = self._connection()
        except Failure as error:
            return [Check("ssh", False, str(error), "correct cluster.options.ssh, or what the message names")]
        way = "".join(f" through {hop.address}" for hop in self._options.hops[:-1])
        return [Check("ssh", True, f"{self.where}{way}, host key {link.host_key}")]

    def close(self) -> None:
        self._closed = True
        link = self._link
        if link is not None:
            link.close()


class _Link:
    """One connection: machines gone through, the sessions on the last of them."""

    def __init__(self, options: SshOptions, user: str, without: Sequence[str], limit: int) -> None:
        """Connects. Raises :class:`Failure` that names the machine, what was expected and found."""
        self._options = options
        self._output_limit = limit
        self._transports: list[paramiko.Transport] = []
        #: Of the last machine: type and fingerprint.
        self.host_key = ""
        #: Names of the environment there that are taken away from each command.
        self.unwanted: tuple[str, ...] = ()
        self._name = f"{user}@{options.target.address}"
        #: Whether ``timeout`` is there.
        self.can_limit = True
        self._opening = threading.Lock()
        self._ended = threading.Condition()
        self._running = 0
        self._retired = False
        self._most = options.max_sessions
        if not logging.getLogger("paramiko").handlers:
            # Its tracebacks would go to standard error; what they say is in our own messages.
            logging.getLogger("paramiko").addHandler(logging.NullHandler())
        try:
            self._connect(options, user)
            self._greet(without)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return all(transport.is_active() for transport in self._transports)

    def close(self) -> None:
        for transport in reversed(self._transports):
            transport.close()

    def retire(self) -> None:
        """Close it when the last command on it has ended."""
        with self._ended:
            self._retired = True
            idle = self._running == 0
        if idle:
            self.close()

    # ------------------------------------------------------------------ connecting

    def _connect(self, options: SshOptions, user: str) -> None:
        known = HostKeys((options.known_hosts,) if options.known_hosts else (), options.host_key)
        hops = options.hops
        agent = _agent() if options.agent else None
        try:
            keys = identities(options, agent)
            way: socket.socket | paramiko.Channel = _dial(hops[0], options)
            for number, hop in enumerate(hops):
                target = number == len(hops) - 1
                transport = self._negotiate(way, hop, known, target)
                name = hop.user or user
                _log_in(transport, hop, name, keys)
                transport.set_keepalive(int(-(-options.keepalive // 1)))
                if not target:
                    way = _through(transport, hop, hops[number + 1], options.connect_timeout)
        finally:
            if agent is not None:
                agent.close()

    def _negotiate(
        self, way: socket.socket | paramiko.Channel, hop: Hop, known: HostKeys, target: bool
    ) -> paramiko.Transport:
        """Agree on keys with a machine, and see that it is the right one."""
        timeout = self._options.connect_timeout
        try:
            # A channel stands for a socket here, which the annotation does not say.
            transport = paramiko.Transport(way)  # type: ignore[arg-type]
        except (OSError, paramiko.SSHException) as error:
            way.close()
            raise Failure(f"{hop.address}: no SSH connection: {error}") from error
        self._transports.append(transport)
        transport.banner_timeout = transport.auth_timeout = timeout
        security = transport.get_security_options()
        wanted = known.kinds(hop.host, hop.port, target=target)
        wanted = [name for kind in wanted for name in _SIGNATURES.get(kind, (kind,))]
        first = [name for name in wanted if name in security.key_types]
        security.key_types = (*first, *(name for name in security.key_types if name not in first))
        try:
            transport.start_client(timeout=timeout)
            key = transport.get_remote_server_key()
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise Failure(
                f"{hop.address}: expected an SSH server, but it did not agree on a connection within "
                f"{timeout:g} s: {error or 'it hung up'}"
            ) from error
        known.verify(hop.host, hop.port, key.asbytes(), target=target)
        self.host_key = f"{key.get_name()} {fingerprint(key.asbytes())}"
        return transport

    def _greet(self, without: Sequence[str]) -> None:
        """See that the shell there reads quoted words, and what its environment holds."""
        patience = self._options.connect_timeout
        limit = ("timeout", "-s", "KILL", str(math.ceil(patience) + 1))
        try:
            result = self.run(("env",), b"exec " + quote(["env", _PROBE, *limit, "env"]), None, patience)
            if result.rc in (126, 127):
                self.can_limit = False
                result = self.run(("env",), b"exec " + quote(["env", _PROBE]), None, patience)
        except _Lost as error:
            raise Failure(f"{self._name}: logged in, but no command can be run: {error}") from error
        if result.timed_out:
            raise Failure(
                f"{self._name}: logged in, but `env` did not end within {patience:g} s. A login shell reads "
                "its start-up files before each command (bash ~/.bashrc): see that they end at once."
            )
        if not result.ok or _PROBE not in result.text.splitlines():
            found = result.complaint() if not result.ok else result.text[:200]
            raise Failure(
                f"{self._name}: expected a login shell that takes quoted words as /bin/sh does, found "
                f"{found!r}. Give the account /bin/sh or /bin/bash, and no forced command."
            )
        names = dict.fromkeys(_VARIABLE.findall(result.text))
        prefixes = tuple(without)
        self.unwanted = tuple(name for name in names if prefixes and name.startswith(prefixes))

    # ------------------------------------------------------------------ sessions

    def run(self, argv: tuple[str, ...], line: bytes, given: bytes | None, timeout: float) -> Result:
        """Run one line, with ``given`` on its standard input. Raises :class:`_Lost` if it was not started."""
        channel = self._open()
        began = time.monotonic()
        try:
            # The library waits for the server's nod without a limit of its own.
            watch = threading.Timer(timeout, channel.close)
            watch.daemon = True
            watch.start()
            try:
                channel.exec_command(line)
                if given is not None:
                    channel.sendall(given)
                    channel.shutdown_write()
            except (OSError, EOFError, paramiko.SSHException) as error:
                return _cut(
                    argv, f"{self._name}: {error or 'the connection ended'}", time.monotonic() - began
                )
            finally:
                watch.cancel()
            return self._collect(channel, argv, began, timeout)
        finally:
            channel.close()
            self._give_back()

    def _open(self) -> paramiko.Channel:
        """A session, as soon as the server may have one more."""
        pause, longest = _REFUSED_PAUSES
        while True:
            with self._ended:
                while self._running >= self._most:
                    self._ended.wait()
                self._running += 1
            try:
                # One at a time: the library keeps the reason of a refusal for the whole connection.
                with self._opening:
                    return self._transports[-1].open_session(timeout=self._options.connect_timeout)
            except paramiko.ChannelException as error:
                refusal = error.text
            except (OSError, EOFError, paramiko.SSHException) as error:
                self._give_back()
                raise _Lost(str(error) or "the connection ended") from error
            with self._ended:
                self._running -= 1
                if self._running == 0:
                    raise _Lost(f"the server refuses a session: {refusal}")
                # It allows fewer than we were told: when another has ended, once more.
                self._ended.wait(pause)
            pause = min(pause * 2, longest)

    def _give_back(self) -> None:
        """One session fewer is in use."""
        with self._ended:
            self._running -= 1
            self._ended.notify()
            last = self._retired and self._running == 0
        if last:
            self.close()

    def _collect(
        self, channel: paramiko.Channel, argv: tuple[str, ...], began: float, timeout: float
    ) -> Result:
        out, err = bytearray(), bytearray()
        timed_out = too_long = False
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        while True:
            # Asked before reading: what came before the end is then read in this round.
            ended = channel.eof_received or channel.closed
            _drain(channel.recv_ready, channel.recv, out, self._output_limit)
            _drain(channel.recv_stderr_ready, channel.recv_stderr, err, self._output_limit)
            if len(out) > self._output_limit or len(err) > self._output_limit:
                too_long = True
                break
            if ended:
                break
            left = began + timeout - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            poll.poll(left * 1000)
        if not timed_out and not too_long:
            channel.status_event.wait(max(0.0, began + timeout - time.monotonic()))
            timed_out = not channel.status_event.is_set()
        seconds = time.monotonic() - began
        stderr = err.decode("utf-8", errors="replace")
        if not timed_out and not too_long and channel.exit_status < 0:
            how = "it was ended by a signal" if self.alive else "the connection ended"
            said = (
                f"{self._name}: {how} before {argv[0]} did; the effect of the command is not known\n{stderr}"
            )
            return _cut(argv, said, seconds, bytes(out), signalled=self.alive)
        return Result(
            argv=argv,
            rc=124 if timed_out else channel.exit_status,
            stdout=bytes(out),
            stderr=stderr,
            seconds=seconds,
            timed_out=timed_out,
            too_long=too_long,
        )


#: Host key types whose signatures have names of their own.
_SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}


def _drain(ready: Callable[[], bool], receive: Callable[[int], bytes], into: bytearray, limit: int) -> None:
    while ready() and len(into) <= limit:
        into += receive(1 << 20)


def _cut(
    argv: tuple[str, ...], said: str, seconds: float, out: bytes = b"", *, signalled: bool = False
) -> Result:
    return Result(
        argv=argv, rc=255, stdout=out, stderr=said, seconds=seconds, cut=True, signalled=signalled
    )  # fmt: skip


def _agent() -> paramiko.Agent | None:
    if not os.environ.get("SSH_AUTH_SOCK"):
        return None
    try:
        return paramiko.Agent()
    except (OSError, EOFError, paramiko.SSHException):
        # A socket without an agent behind it: as if there were none.
        return None


def _dial(hop: Hop, options: SshOptions) -> socket.socket:
    """A connection to the first machine."""
    try:
        way = socket.create_connection((hop.host, hop.port), timeout=options.connect_timeout)
    except socket.gaierror as error:
        raise Failure(
            f"{hop.host}: expected the name or address of a machine, found no machine of that name "
            f"({error.strerror})"
        ) from error
    except ConnectionRefusedError as error:
        raise Failure(
            f"{hop.address}: expected an SSH server, but the connection was refused: no program listens on "
            "that port; is sshd running there, and is the port right?"
        ) from error
    except TimeoutError as error:
        raise Failure(
            f"{hop.address}: expected an SSH server, but got no answer within {options.connect_timeout:g} "
            "s; is the machine up, and does a firewall block the port?"
        ) from error
    except OSError as error:
        raise Failure(f"{hop.address}: cannot be reached: {error.strerror or error}") from error
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if options.keepalive and hasattr(socket, "TCP_USER_TIMEOUT"):
        patience = int(options.keepalive * _PATIENCE * 1000)
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
    return way


def _log_in(transport: paramiko.Transport, hop: Hop, user: str, keys: Sequence[Identity]) -> None:
    """Show the server one key after the other."""
    refused = []
    try:
        for identity in keys:
            try:
                more = transport.auth_publickey(user, identity.key)
            except paramiko.BadAuthenticationType as error:
                offers = ", ".join(error.allowed_types)
                raise Failure(
                    f"{user}@{hop.address}: expected a server that takes keys (publickey), found a server "
                    f"that takes {offers}"
                ) from error
            except paramiko.AuthenticationException:
                refused.append(described(identity))
                continue
            if more:
                raise Failure(
                    f"{user}@{hop.address}: took {described(identity)}, and also asks for "
                    f"{', '.join(more)}; headway can give only a key"
                )
            return
    except (OSError, EOFError, paramiko.SSHException) as error:
        tried = f" after {', '.join(refused)}" if refused else ""
        raise Failure(
            f"{user}@{hop.address}: hung up during the log-in{tried}: {error or 'no reason'}"
        ) from error
    raise Failure(
        f"{user}@{hop.address}: log-in refused: expected the server to accept one of these keys: "
        f"{', '.join(refused)}. Append the public key to ~{user}/.ssh/authorized_keys there, or set "
        "ssh.user and ssh.key_file."
    )


def _through(transport: paramiko.Transport, hop: Hop, onward: Hop, timeout: float) -> paramiko.Channel:
    """A way through a machine to the next one."""
    try:
        return transport.open_channel(
            "direct-tcpip", (onward.host, onward.port), ("127.0.0.1", 0), timeout=timeout
        )
    except paramiko.ChannelException as error:
        raise Failure(
            f"{hop.address}: expected it to connect to {onward.address}, but it answered: {error.text}. Is "
            "AllowTcpForwarding on there, and does it reach that machine?"
        ) from error
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise Failure(
            f"{hop.address}: no connection from there to {onward.address}: {error or 'it hung up'}"
        ) from error
