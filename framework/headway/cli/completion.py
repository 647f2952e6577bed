"""``headway completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from headway.cli.common import examples

#: What click calls the variable by which the shell's function asks for completions.
VARIABLE = "_HEADWAY_COMPLETE"


@click.command(
    "completion",
    epilog=examples(
        'eval "$(headway completion bash)"                                        this shell',
        "headway completion bash > /etc/bash_completion.d/headway                 all users of bash",
        "headway completion zsh > /usr/local/share/zsh/site-functions/_headway    all users of zsh",
        "headway completion fish > ~/.config/fish/completions/headway.fish        this user of fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the program by which SHELL completes headway's commands and options.

    The Debian package installs it for all three.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    made = kind(root, {}, "headway", VARIABLE)
    # Not `made.source()`: it starts the shell to ask for its version, and the shell need not be here.
    click.echo(made.source_template % made.source_vars())
