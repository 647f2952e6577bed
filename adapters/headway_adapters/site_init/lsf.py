"""``headway init lsf``: what LSF says of itself, and the files with which headway watches and drives it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from headway.adapter import Check
from headway.adapter.survey import Place, Seen, SiteFile
from headway.errors import Failure
from headway.model import ClusterDescription
from headway_adapters.lsf import checks as lsf_checks
from headway_adapters.lsf import cluster_listing
from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.site_init.asking import bin_dir, one_line, options_with, takeable
from headway_adapters.site_init.configuration import Key, configuration, pace
from headway_adapters.site_init.page import (
    Service,
    Step,
    driving_steps,
    first_steps,
    page,
    policy_step,
    watching_steps,
)
from headway_adapters.site_init.unit import unit

#: What profile.lsf sets and LSF's commands go by.
_VARIABLES = ("LSF_ENVDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_BINDIR", "EGO_TOP")
_MASTER = re.compile(r"^My master name is (\S+)", re.MULTILINE)


class LsfSurvey:
    """LSF."""

    title = "LSF"
    pools_word = "queues"
    programs = ("lsid", "bqueues", "bjobs")

    def folders(self) -> Sequence[Path]:
        said = os.environ.get("LSF_BINDIR", "")
        return (*((Path(said),) if said else ()), Path("/opt/lsf/bin"), Path("/opt/volclava/bin"))

    def ask(self, options: Mapping[str, Any]) -> AskedLsf:
        reach = {**options, **bin_dir(options, self.folders(), self.programs[0])}
        if "environment" not in reach and "ssh" not in reach and (environment := _environment(reach)):
            reach["environment"] = environment
        checked = options_with(LsfOptions, reach, self.pools_word, ["x"])
        with closing(LsfClient(checked, read_only=True)) as client:
            return _asked(client, checked, reach)


class AskedLsf:
    """An LSF that has answered."""

    def __init__(self, seen: Seen, queues: Mapping[str, cluster_listing.Queue]) -> None:
        self.seen = seen
        self._queues = queues

    def configuration(self, pools: Sequence[str], place: Place) -> str:
        defaults = LsfOptions(queues=tuple(pools))
        keys = [
            Key("queues", list(pools), "jobs of other queues are never touched"),
            Key("flavour", defaults.flavour, "auto, ibm or openlava"),
            *pace(defaults, "a forced job to run"),
        ]
        plugins = [("easy", "the policy"), ("first-fit", "the placement")]
        return configuration(self.seen, "lsf", keys, plugins, place)

    def files(
        self, pools: Sequence[str], cluster: ClusterDescription, checks: Sequence[Check], place: Place
    ) -> Sequence[SiteFile]:
        service = Service.of(place, "headway")
        text = unit(service, after=[], about_user=["An administrator of the queues in LSF (README.md)."])
        told = page(self.seen, cluster, pools, "queues", checks, self._steps(pools, service))
        return [SiteFile("headway.service", text), SiteFile("README.md", told)]

    def _steps(self, pools: Sequence[str], service: Service) -> list[Step]:
        limited = [
            f"queue {name}: {', '.join(queue.slot_limits)}: brun does not keep it; write it into the "
            "plugin `limits`"
            for name in pools
            if (queue := self._queues.get(name)) is not None and queue.slot_limits
        ]
        policy = policy_step(
            "`plugins` of headway.yaml is `easy`. LSF's order, shares and limits have no import: the "
            "pages of headway on "
            "priorities, fair share and limits have their keys.", limited, [],
        )  # fmt: skip
        names = " ".join(pools)
        administrator = f"ADMINISTRATORS = {service.user}"
        return [
            *first_steps(service),
            *watching_steps(service, "LSF", "privilege, queue NAME"),
            policy,
            Step(
                "Rights",
                "`brun`, and `bstop`, `bkill`, `bmod` of others' jobs are an administrator's. Put "
                f"`{administrator}` (beside "
                f"the names that are there) into the sections of {', '.join(pools)} in lsb.queues, then:",
                ["badmin reconfig"],
            ),
            *driving_steps(
                service,
                f"From the first line on LSF starts no job of {', '.join(pools)} by itself; jobs are "
                "accepted and stay PEND, "
                "and running jobs run on.",
                [f"badmin qinact {names}"], f"bsub -q {pools[0]} -n 1 -W 1 sleep 10",
                "Running jobs run on, and LSF's next cycle starts what waits.", [f"badmin qact {names}"],
            ),
        ]  # fmt: skip


def _asked(client: LsfClient, options: LsfOptions, reach: dict[str, Any]) -> AskedLsf:
    remarks: list[str] = []
    kind, name = lsf_checks.flavour(client, options)
    listed, told = client.look([("bqueues", "-l"), ("lsid",)])
    queues = cluster_listing.read_queues(listed.text)
    if not queues:
        raise Failure(f"bqueues -l: expected queues, found {one_line(listed.text) or 'nothing'!r:.80}")
    names = takeable(queues, LsfSurvey.pools_word, LsfOptions, remarks)
    settings = {"master": master[1]} if (master := _MASTER.search(told.text)) else {}
    settings |= {f"queue {one_line(queue.name)}": one_line(queue.status) for queue in queues.values()}
    seen = Seen(
        one_line(kind.title), one_line(name), client.user, tuple(names), settings, reach, tuple(remarks)
    )
    return AskedLsf(seen, queues)


def _environment(reach: Mapping[str, Any]) -> dict[str, str]:
    """What profile.lsf has set here; else where LSF's files are beside its commands."""
    found = {name: value for name in _VARIABLES if (value := os.environ.get(name, ""))}
    if "LSF_ENVDIR" in found or "bin_dir" not in reach:
        return found
    home = Path(str(reach["bin_dir"])).parent
    folder = next((home / name for name in ("conf", "etc") if (home / name / "lsf.conf").exists()), None)
    return {**found, "LSF_ENVDIR": str(folder)} if folder is not None else found
