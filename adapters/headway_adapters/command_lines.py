"""What ``headway --help`` says of the commands that come with adapters, so that it need not load them
(entry points ``headway.command_lines``)."""

from __future__ import annotations

#: Command -> its line.
LINES = {
    "emulate-commands": "Emulate the commands of PBS or LSF, to try a configuration on a laptop.",
    "import": "Write the configuration that does what a site's scheduler does now.",
    "node-agent": "On a node: report clock, energy and jobs; set a job's frequency.",
}
