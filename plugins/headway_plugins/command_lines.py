"""What ``headway --help`` says of the commands that come with plugins, so that it need not load them
(entry points ``headway.command_lines``)."""

from __future__ import annotations

#: Command -> its line.
LINES = {
    "arrivals": "How users' jobs come: logins, bursts and silences.",
    "bundle": "Start a large job early on what is free, and let it grow: elastic job bundling, as a user.",
    "fairness": "Tell which users the cluster served unfairly, and which jobs overtook theirs.",
    "fit": "Fit an application's formula to its recorded runs.",
    "metajob": "Reserve nodes of several sites at once, and start jobs there together.",
    "plan": "Plan a batch of moldable jobs: programs that may be started "
    "on fewer processors than they have...",
    "predict": "Predict how long further runs of an application take, and suggest limits for them.",
    "priority": "Print the priority of each job that waits, and what each factor gives to it, as sprio does.",
    "profile": "Plan the controlled runs of a pipeline: one for each "
    "combination of its parameters, with one copy...",
    "protect": "Run a command with its security levels carried out: signature, digests, encryption.",
    "security": "Security levels: what they cost here, and the keys, "
    "manifests and sealed files of `headway protect`.",
    "shares": "Print the shares of each account and user, and their use.",
    "size": "Tell how many copies each filter of a pipeline gets, from "
    "what controlled runs have measured;...",
    "window": "Plan a window with a deadline: of jobs whose rewards are "
    "only earned if they end in time, which...",
}
