"""What ``headway --help`` says of the commands that come with adapters, so that it need not load them
(entry points ``headway.command_lines``)."""

from __future__ import annotations

#: Command -> its group and its line.
LINES = {
    "import": ("operate", "Write the configuration that keeps a site's policy."),
    "node-agent": ("operate", "On a node: report clock, energy, jobs; set frequencies."),
    "emulate-commands": ("operate", "Emulate the commands of PBS or LSF on a laptop."),
    "lab": ("operate", "A throw-away batch system with jobs and the daemon."),
}
