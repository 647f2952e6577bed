"""PBS's commands: the only place of this adapter that runs commands."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headway_adapters.pbs import licences
from headway_adapters.pbs.budget import Budget
from headway_adapters.pbs.fence import EPOCH, HOOK, PbsFence
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.polling.client import CommandClient
from headway_adapters.transport import Result, Transport, make_transport

#: Lists PBS's own schedulers.
LIST_SCHEDULERS = ("qmgr", "-c", "list sched")
#: Lists what the fence needs.
_LIST_FENCE = tuple(("qmgr", "-c", f"list {kind}") for kind in (f"resource {EPOCH}", f"hook {HOOK}"))
_READERS = frozenset({"qstat", "qselect", "pbs_rstat"})
#: Options with which pbsnodes only lists.
_LISTING = frozenset({"-a", "-v", "-av", "-x", "-F", "json"})
#: Signs in an error message that the server did not answer, so that asking again now is useless.
_SILENCE = (
    "Connection refused",
    "Connection timed out",
    "Connection reset",
    "No route to host",
    "cannot connect to server",
    "annot connect to specified server",
    "Communication failure",
    "Premature end of message",
    "End of File",
)


def only_reads(argv: Sequence[str]) -> bool:
    """Whether a command certainly changes nothing."""
    if argv[0] in _READERS or list(argv[1:]) == ["--version"]:
        return True
    if argv[0] == "qmgr":
        return tuple(argv) in (licences.LIST, LIST_SCHEDULERS, *_LIST_FENCE)
    return argv[0] == "pbsnodes" and len(argv) > 1 and set(argv[1:]) <= _LISTING


def is_silence(result: Result) -> bool:
    """Whether a failed command failed because the server did not answer."""
    if result.ok:
        return False
    return result.unanswered or any(sign in result.stderr for sign in _SILENCE)


def environment(options: PbsOptions) -> dict[str, str]:
    """What is added to the commands' environment: times in UTC, and which server."""
    added = {"TZ": "UTC"}
    conf = options.pbs_conf
    if conf is None and options.ssh is None:
        conf = os.environ.get("PBS_CONF_FILE")
    if conf:
        added["PBS_CONF_FILE"] = conf
    if options.server:
        added["PBS_DEFAULT"] = options.server
    return added


class PbsClient(CommandClient):
    """Runs PBS's commands through a transport."""

    def __init__(self, options: PbsOptions, *, read_only: bool, transport: Transport | None = None) -> None:
        transport = transport or make_transport(options, environment=environment(options))
        self.transport = transport
        self.budget = Budget(options.commands_per_minute)
        super().__init__(transport, timeout=options.command_timeout, read_only=read_only)
        if options.flavour != "torque":
            self.fence = PbsFence(self.run, self.is_silence)

    def run_many(self, argvs: Sequence[Sequence[str]]) -> list[Result]:
        changing = sum(not self.only_reads(argv) for argv in argvs)
        self.budget.spend(changing)
        if changing < len(argvs):
            self.budget.wait(len(argvs) - changing)
        return super().run_many(argvs)

    def act(self, argv: Sequence[str], timeout: float) -> Result:
        self.budget.spend(1)
        return super().act(argv, timeout)

    def close(self) -> None:
        self.budget.close()
        super().close()

    def only_reads(self, argv: Sequence[str]) -> bool:
        return only_reads(argv)

    def is_silence(self, result: Result) -> bool:
        return is_silence(result)
