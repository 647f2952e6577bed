"""`headway import`: whatever becomes of a site's files, a configuration is made and no error is raised."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from imports import FILES, made

from headway.config import parse_config
from headway.plugins import Catalogue, Plugins

GIVEN = {
    "slurm": ("slurm.conf", "slurm.dump", "qos.txt", "running-config.txt", "running-assoc-tree.txt"),
    "maui": ("maui.cfg",),
    "pbs": ("sched_config", "resource_group", "holidays", "dedicated_time", "qmgr.txt"),
}
PIECES = (
    "=", ":", ",", "|", "[", "]", "'", '"', "\\", "#", " ", "\t", "-1", "0", "1e400", "-", "+=", "UNLIMITED",
    "NONE", "9" * 30, "[1-", "DEFAULT", "ALL", "\N{SUPERSCRIPT TWO}", "\x85", "create queue a",
    "PartitionName=", "NodeName=", "Gres=gpu:", "[u:", "PBS_GENERIC", "FSTARGET=", "Parent - '", "%", "{}",
    "!!python", "null",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with a few pieces taken out, put in, doubled or exchanged."""
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.integers(0, 40)))
        piece = draw(st.sampled_from(PIECES) | st.text(max_size=5))
        text = {
            "out": text[:at] + text[to:],
            "in": text[:at] + piece + text[at:],
            "twice": text[:to] + text[at:to] + text[to:],
            "for": text[:at] + piece + text[to:],
        }[draw(st.sampled_from(("out", "in", "twice", "for")))]
    return text


@pytest.mark.parametrize("system", GIVEN)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_files_make_a_configuration(system: str, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(GIVEN[system]), min_size=1, unique=True))
    texts = {name: data.draw(mutated((FILES / name).read_text()), label=name) for name in names}
    found = made(system, **texts)
    config = parse_config(found.text(system))
    Plugins.load(config.plugin_configs(), Catalogue(), None)
    config.emulation.description()
