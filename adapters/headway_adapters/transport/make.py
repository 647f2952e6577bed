"""The transport that a site's options ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.inputs.extras import need_ssh
from headway_adapters.transport.base import Transport
from headway_adapters.transport.local import LocalTransport
from headway_adapters.transport.options import TransportOptions


def make_transport(
    options: TransportOptions, *, environment: Mapping[str, str] | None = None, without: Sequence[str] = ()
) -> Transport:
    """The transport that the options ask for. It connects when the first command is run.

    ``environment`` is added to the commands' own, from which names that begin with one of
    ``without`` are taken away first.
    """
    if options.ssh is None:
        return LocalTransport(
            environment=environment,
            without=without,
            bin_dir=options.bin_dir,
            output_limit=options.output_limit,
            workers=options.parallel_commands,
        )
    # Not at the top: a site that does not use SSH needs no library for it.
    need_ssh(f"The key `ssh` (commands on {options.ssh.host})")
    from headway_adapters.transport.ssh import SshTransport

    return SshTransport(
        options.ssh,
        environment=environment,
        without=without,
        bin_dir=options.bin_dir,
        output_limit=options.output_limit,
        workers=options.parallel_commands,
    )
