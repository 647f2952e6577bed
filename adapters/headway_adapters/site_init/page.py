"""README.md of a site: what was found, and what to do, with the commands for this cluster."""

from __future__ import annotations

import grp
import pwd
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from headway.adapter import Check
from headway.adapter.survey import CONFIGURATION, SCHEMA, Place, Seen
from headway.cli.printable import printable
from headway.model import ClusterDescription

#: Where a site's units belong on the machine of the service.
UNITS = "/etc/systemd/system"


@dataclass(frozen=True)
class Step:
    """Something to do: a heading, why, commands for a shell (or lines of a file), and what follows."""

    title: str
    text: str = ""
    commands: Sequence[str] = ()
    then: str = ""
    #: Of what the block is: ``sh``, or empty for lines of a file.
    kind: str = "sh"


@dataclass(frozen=True)
class Service:
    """The service as the steps name it: its user, and headway's commands as this user."""

    place: Place
    user: str
    group: str
    #: The user is there already.
    known: bool

    @classmethod
    def of(cls, place: Place, usual: str) -> Service:
        """``usual``: the user where the place names none."""
        user = place.user or usual
        try:
            entry = pwd.getpwnam(user)
            return cls(place, user, grp.getgrgid(entry.pw_gid).gr_name, known=True)
        except KeyError:
            return cls(place, user, user, known=False)

    def run(self, words: str) -> str:
        """A command of headway as the service's user, with its configuration."""
        asked = f"runuser -u {shlex.quote(self.user)} -- {shlex.quote(self.place.program)}"
        return f"{asked} {words} -c {shlex.quote(self.place.config)}"


def page(
    seen: Seen, cluster: ClusterDescription, pools: Sequence[str], pools_word: str, checks: Sequence[Check],
    steps: Sequence[Step],
) -> str:  # fmt: skip
    """The whole page."""
    lines = [
        f"# headway beside {plain(seen.title)}: {plain(seen.cluster)}",
        "",
        "Written by `headway init`, which asked the cluster and changed nothing. Commands are root's.",
        "",
        "## What was found",
        "",
        *_table(pools_word.removesuffix("s"), cluster, pools),
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| {plain(key)} | {code(value)} |" for key, value in seen.settings.items()),
    ]
    if seen.remarks:
        lines += ["", *(f"- {plain(one)}" for one in seen.remarks)]
    if undone := [one for one in checks if not one.ok or not one.known]:
        lines += [
            "",
            "`headway check` says now, and what to do about it; steps below do so where only driving "
            "needs it:",
            "",
        ]
        lines += [f"- {_undone(one)}" for one in undone]
    lines += ["", "## What to do"]
    for number, step in enumerate(steps, 1):
        lines += ["", f"### {number}. {step.title}"]
        if step.text:
            lines += ["", step.text]
        if step.commands:
            lines += ["", f"```{step.kind}", *step.commands, "```"]
        if step.then:
            lines += ["", step.then]
    return "\n".join(lines) + "\n"


def _undone(check: Check) -> str:
    when = " (for driving)" if check.driving else "" if check.known else " (not known from here)"
    remedy = f" To do: {plain(check.remedy)}." if check.remedy else ""
    return f"{plain(check.subject)}{when}: {plain(check.detail)}.{remedy}"


def _table(word: str, cluster: ClusterDescription, pools: Sequence[str]) -> list[str]:
    lines = [f"| {word} | nodes | processors | also | longest job |", "|---|---|---|---|---|"]
    by_name = {pool.name: pool for pool in cluster.pools}
    for name in pools:
        nodes = [node for node in cluster.nodes if name in node.pools]
        counted: dict[str, int] = {}
        for node in nodes:
            for kind, amount in node.gres:
                counted[kind] = counted.get(kind, 0) + amount
        also = ", ".join(f"{amount} {kind}" for kind, amount in sorted(counted.items()))
        longest = by_name[name].max_walltime if name in by_name else 0.0
        limit = f"{longest / 3600:g} h" if longest else "no limit"
        lines.append(
            f"| {plain(name)} | {len(nodes)} | {sum(node.processors for node in nodes)} | {plain(also)} | "
            f"{limit} |"
        )
    return lines


def plain(said: str) -> str:
    """What a cluster says, on one line of Markdown, in which it can be nothing but text."""
    words = " ".join(printable(said).split())
    return "".join(f"\\{c}" if c in "\\`*[]<>|" else c for c in words)


def code(said: str) -> str:
    """The same as code."""
    words = " ".join(printable(said).split()).replace("`", "'").replace("|", "\\|")
    return f"`{words}`" if words else ""


def first_steps(service: Service, *more: str) -> list[Step]:
    """Installation, user and files; ``more``: units beside headway.service."""
    place, user, group = service.place, shlex.quote(service.user), shlex.quote(service.group)
    steps = []
    if not place.installed:
        folder = str(place.program).removesuffix("/bin/headway")
        steps.append(
            Step(
                "Install headway where the service's user can run it",
                "What runs now is in a place that the service cannot reach (a checkout, a home, /tmp). In "
                "a checkout:",
                ["python3 -m pip wheel --no-deps --wheel-dir dist .", f"/usr/bin/python3 -m venv {folder}",
                 f"{folder}/bin/python -m pip install dist/headway-*.whl"],
            )
        )  # fmt: skip
    if not service.known:
        steps.append(
            Step(
                f"Make the user {service.user}",
                "It needs no shell, no sudo rule and no capability.",
                [f"useradd --system --home-dir /var/lib/headway --shell /usr/sbin/nologin {user}"],
            )
        )
    installs = [
        f"install -d -m 755 {shlex.quote(place.folder)}",
        f"install -m 640 -o root -g {group} {CONFIGURATION} {shlex.quote(place.config)}",
        f"install -m 644 {SCHEMA} {shlex.quote(f'{place.folder}/{SCHEMA}')}",
        f"install -m 644 {' '.join(('headway.service', *more))} {UNITS}/",
        f"install -d -m 750 -o {user} -g {group} /var/lib/headway",
        f"systemd-analyze verify {UNITS}/headway.service",
        "systemctl daemon-reload",
    ]
    steps.append(Step("Put the files into their places", "In this folder:", installs))
    return steps


def watching_steps(service: Service, system: str, later: str) -> list[Step]:
    """Check, watch, and the report that shows what driving would change. ``later``: what ``check`` may say of
    lines that only driving needs."""
    return [
        Step(
            "Check",
            "It changes nothing, and every line must be `ok`"
            + (f", or `later` ({later})." if later else "."),
            [service.run("check")],
        ),
        Step(
            "Watch",
            f"{system} stays exactly as it is; headway decides, and writes down what it would do.",
            ["systemctl enable --now headway", "journalctl -u headway -f"],
            "Leave it running for some days. What it says of a job that a user asks about:\n\n"
            f"```sh\n{service.run('explain JOB')}\n{service.run('status')}\n```",
        ),
        Step(
            "What would driving change? The shadow report",
            "One page from the journal: what the batch system did beside what headway would have done.",
            [service.run("shadow report --since 14d --out /var/lib/headway/shadow.html")],
        ),
    ]


def policy_step(about: str, left: Sequence[str], commands: Sequence[str]) -> Step:
    """What the plugins of the configuration do and leave out, and how the rest is read from the site's files.

    ``left``: what is not carried over, in sentences.
    """
    listed = "".join(f"\n- {plain(one)}" for one in left)
    text = f"{about} It does not carry over:\n{listed}" if left else about
    if commands:
        text += ("\n\n" if left else " ") + "The same from the files, line by line, for a closer look:"
    return Step("Compare the policy", text, commands)


def driving_steps(
    service: Service, about: str, takes: Sequence[str], job: str, about_back: str, gives: Sequence[str],
    *, timer: str = "",
) -> list[Step]:  # fmt: skip
    """To drive, and back. ``takes`` and ``gives``: commands of the batch system's administrator before
    headway drives, and after it; ``job``: a user's command that tries it; ``timer``: the unit that gives
    waiting jobs back where headway is silent."""
    watched = [f"systemctl enable --now {timer}"] if timer else []
    config = shlex.quote(service.place.config)
    tried = f"As a user: `{job}`. It waits for headway, and starts within seconds."
    return [
        Step(
            "Drive, for two hours at first",
            " ".join([about, "After two hours headway gives all of it back by itself. Every line of `check` "
                      "must be `ok`."]).lstrip(),
            [*takes, "systemctl stop headway", service.run("check"), service.run("drive --for 2h")],
            tried,
        ),
        Step(
            "Drive",
            "Without an end:",
            [*takes, f"sed -i 's/^mode: monitor /mode: drive   /' {config}", service.run("check"),
             "systemctl restart headway", *watched, "journalctl -u headway -f"],
        ),
        Step(
            "Back, at any time",
            about_back,
            [" ".join(["systemctl disable --now", *filter(None, [timer]), "headway"]),
             service.run("give-back --all"), *gives],
        ),
    ]  # fmt: skip
