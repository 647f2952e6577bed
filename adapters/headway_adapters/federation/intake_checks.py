"""What ``headway check`` says of jobs that come from other clusters: as which user, and if that works."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headway.adapter import Check
from headway.errors import HeadwayError
from headway.model.sites import Intake
from headway_adapters.federation.member import Member
from headway_adapters.polling.resubmission import IntakeCheck

_NO_INTAKE = Intake()


def check_intakes(members: Mapping[str, Member], intakes: Mapping[str, Intake]) -> list[Check]:
    """A line for each cluster that jobs can come to; nothing where there are fewer than two."""
    able: dict[str, IntakeCheck] = {
        name: found
        for name, member in members.items()
        if (found := getattr(member.adapter, "intake", None)) is not None
    }
    if len(able) < 2:
        return [
            Check(
                f"{name}: submit_as", False,
                "jobs come from other clusters to Slurm clusters only, and at least two are needed",
                f"remove clusters.{name}.site.submit_as",
            )
            for name, intake in intakes.items()
            if intake.submit_as
        ]  # fmt: skip
    leavers: dict[str, set[str]] = {}
    for name, one in able.items():
        try:
            leavers[name] = set(one.leavers())
        except HeadwayError:
            continue  # It does not answer, and its own checks say so.
    found = []
    for name in leavers:
        users = set().union(*(there for other, there in leavers.items() if other != name))
        try:
            said = able[name].check(intakes.get(name, _NO_INTAKE), users)
        except HeadwayError as error:
            said = Check("submit_as", False, str(error))
        found.append(msgspec.structs.replace(said, subject=f"{name}: {said.subject}").for_driving())
    return found
