"""The keys of ``slurm.conf`` that have no counterpart: which say which job starts when, and which do not.

All keys that there are stand in :mod:`headway_adapters.site_import.slurm_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from headway.errors import nearest
from headway_adapters.site_import.found import Line
from headway_adapters.site_import.slurm_files import as_written
from headway_adapters.site_import.slurm_names import KNOWN, SPELT

#: Values that say nothing.
_NOTHING = re.compile(
    r"|\(null\)|n/a|no|none|-1|infinite|0( (min|sec))?|00:00:00|topology/(default|flat)|[a-z]+/none",
    re.IGNORECASE,
)
#: What is carried over.
CARRIED = frozenset({
    "prioritytype", "priorityweightage", "priorityweightassoc", "priorityweightfairshare",
    "priorityweightjobsize", "priorityweightpartition", "priorityweightqos", "priorityweighttres",
    "prioritymaxage", "priorityfavorsmall", "prioritycalcperiod", "prioritydecayhalflife",
    "priorityusageresetperiod", "priorityflags", "fairsharedampeningfactor", "schedulertype",
    "schedulerparameters", "preempttype", "preemptmode", "preemptexempttime", "accountingstorageenforce",
    "licenses", "schedulertimeslice", "schedulerport", "schedulerauth",
})  # fmt: skip
#: Keys that begin so say which job starts when, keys of coming versions, too.
_POLICY = ("priority", "sched", "preempt", "fairshare")
#: Others that do, and what headway does instead.
_LEFT = {
    "overtimelimit": "jobs are expected to end at their limits",
    "topologyplugin": "placement does not follow the topology",
    "topologyparam": "placement does not follow the topology",
    "prioritysitefactorplugin": "a factor of the site's own has to become a plugin (docs/plugins)",
    "prioritysitefactorparameters": "a factor of the site's own has to become a plugin (docs/plugins)",
    "suspendprogram": "no node is switched off (docs/operators/power.md has how headway does it)",
    "completewait": "jobs start while others complete",
    "burstbuffertype": "burst buffers are not waited for",
    "nodefeaturesplugins": "no node is booted with other features",
    "powerplugin": "power is not capped (docs/operators/power.md has how headway does it)",
    "powerparameters": "power is not capped (docs/operators/power.md has how headway does it)",
    "federationparameters": "jobs are not sent to other clusters",
    "mcsplugin": "nodes are shared whatever the jobs' labels",
    "downnodes": "a dry run has these nodes",
    "frontendname": "a dry run has no front ends",
}  # fmt: skip
#: Words of SelectTypeParameters that choose nodes, and what headway does instead.
_CHOOSING = {"LLN": "nodes are not chosen by load", "PACK_NODES": "nodes are not chosen to be packed"}


def without_counterpart(config: Mapping[str, tuple[str, Line]]) -> Iterator[tuple[Line, str]]:
    """The lines of keys that say which job starts when and are not carried over, and of unknown keys."""
    for key, (text, line) in config.items():
        if key in CARRIED or (_NOTHING.fullmatch(text) is not None and key in KNOWN):
            continue
        written = as_written(key, line)
        if key in _LEFT:
            yield line, f"{written}={text} is not carried over: {_LEFT[key]}"
        elif key == "selecttypeparameters":
            for word, why in _CHOOSING.items():
                if word in text.upper():
                    yield line, f"{written}={text} is not carried over: {why}"
        elif key.startswith(_POLICY):
            yield line, f"{written} has no counterpart.{_meant(key, CARRIED)}"
        elif key not in KNOWN:
            yield line, f"{written} is no key of slurm.conf that is known here.{_meant(key, KNOWN)}"


def _meant(key: str, known: frozenset[str]) -> str:
    hint = nearest(key, [SPELT[name] for name in known])
    return hint if "Did you mean" in hint else ""
