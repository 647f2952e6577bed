"""Whether jobs of other clusters can be submitted here as their users: what ``headway check`` tries.

Slurm says whether it would take a submission without taking it (``sbatch --test-only``). So each user with
jobs that may come is tried: whether the command ``submit_as`` runs ``sbatch`` for the user, and whether Slurm
knows the user, the account and the partition.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence

from headway.adapter import Check
from headway.errors import HeadwayError
from headway.model.sites import MOVABLE, Intake
from headway_adapters.polling.remarks import noted, remarks
from headway_adapters.slurm import reader, values, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.resubmission import USER, says

#: Users that are tried, at most.
_MOST = 5
_SUBJECT = "submit_as"
_SCRIPT = b"#!/bin/sh\n"


class SlurmIntake:
    """:class:`headway_adapters.polling.resubmission.IntakeCheck` of Slurm."""

    def __init__(self, options: SlurmOptions, client: SlurmClient) -> None:
        self._options = options
        self._client = client

    def leavers(self) -> Collection[str]:
        """As :meth:`IntakeCheck.leavers`."""
        (shown,) = self._client.look([("squeue", "--json", "-a", "-t", "pending")])
        found = set()
        for record in reader.decode(shown.stdout, "squeue: the listing of jobs", set()).jobs or ():
            words, _ = remarks(noted(reader.said_by_user(values.text(record.comment))[0])[0])
            said = {name: text for name, _, text in (word.strip().partition("=") for word in words)}
            if says(said, MOVABLE):
                found.add(values.text(record.user_name))
        return found

    def check(self, intake: Intake, users: Collection[str]) -> Check:
        """As :meth:`IntakeCheck.check`."""
        own = self._client.user
        others = sorted(user for user in users if USER.fullmatch(user) and user not in (own, "root"))
        if not intake.submit_as:
            return self._without(own, others)
        shown = shlex.join(intake.submit_as)
        try:
            if not others:
                return self._untried(intake, shown)
            failed = {user: why for user in others[:_MOST] if (why := self._refusal(intake, user))}
        except HeadwayError as error:
            return Check(_SUBJECT, False, f"{shown}: {error}", "install it, or correct the command")
        can = [user for user in others[:_MOST] if user not in failed]
        worked = f"jobs of {', '.join(can)} can come" if can else ""
        broken = "; ".join(f"jobs of {user} cannot come: {why}" for user, why in failed.items())
        remedy = (
            f"let {own} run sbatch as these users without a password, with SLURM_CONF if slurm.conf is in no "
            "usual place; each user must have the same name there, and the account; try: "
            + " ".join(self._argv(intake, others[0] if not failed else next(iter(failed))))
        )
        told = "; ".join(filter(None, (f"{shown}: {worked}" if worked else shown, broken)))
        return Check(_SUBJECT, bool(can), told, remedy if failed else "", known=not failed)

    def _without(self, own: str, others: Sequence[str]) -> Check:
        lacks = f"none: only jobs of {own} come here from other clusters"
        if not others:
            return Check(_SUBJECT, True, lacks)
        stay = f"{lacks}; jobs of {', '.join(others[:_MOST])} wait that may go, and they stay where they are"
        remedy = 'name a command that runs sbatch as the user, such as [sudo, -n, -u, "{user}", --]'
        return Check(_SUBJECT, True, stay, remedy, known=False)

    def _untried(self, intake: Intake, shown: str) -> Check:
        self._client.harmless([intake.submit_as[0], "--version"])
        remedy = "try it: " + " ".join(self._argv(intake, "USER"))
        untried = f"{shown}: tried for no user, because no user has a waiting job that may come"
        return Check(_SUBJECT, True, untried, remedy, known=False)

    def _refusal(self, intake: Intake, user: str) -> str:
        """Why Slurm would take no job of the user; "" if it would."""
        result = self._client.harmless(self._argv(intake, user), _SCRIPT)
        return "" if result.ok else result.complaint()

    def _argv(self, intake: Intake, user: str) -> list[str]:
        program = os.path.join(self._options.bin_dir, "sbatch") if self._options.bin_dir else "sbatch"
        words = [word.replace("{user}", user) for word in intake.submit_as]
        words += [program, "--test-only", "--export=NONE", "--ntasks=1", "--time=1", "--chdir=/"]
        words += [f"--partition={writer.name(name, 'a partition')}" for name in self._options.partitions[:1]]
        return words + ([f"--account={writer.name(intake.account, 'an account')}"] if intake.account else [])
