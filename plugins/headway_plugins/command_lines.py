"""What ``headway --help`` says of the commands that come with plugins, so that it need not load them
(entry points ``headway.command_lines``)."""

from __future__ import annotations

#: Command -> its group and its line.
LINES = {
    "fairness": ("operate", "Which users were served unfairly; who overtook whom."),
    "shares": ("users", "The shares of each account and user, and their use."),
    "limits": ("users", "The limits that my jobs are under, and what is in use."),
    "priority": ("users", "Each waiting job's priority by factor, as sprio does."),
    "plan": ("users", "Plan a batch of moldable jobs: order and processors."),
    "window": ("users", "Plan a window with a deadline: which jobs earn most."),
    "bundle": ("users", "Start a large job early on what is free, as a user."),
    "metajob": ("users", "Start jobs together on several sites."),
    "fit": ("users", "Fit an application's formula to its recorded runs."),
    "predict": ("users", "Predict an application's runtime, and suggest limits."),
    "profile": ("users", "Plan the controlled runs of a pipeline."),
    "size": ("users", "How many copies each filter of a pipeline gets."),
    "security": ("users", "Security levels: costs, keys, manifests, sealed files."),
    "protect": ("users", "Run a command with its security levels carried out."),
    "arrivals": ("experiments", "How users' jobs come: logins, bursts and silences."),
}
