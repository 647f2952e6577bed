"""Several clusters in one configuration."""

from __future__ import annotations

from typing import Any

import pytest

from headway import decisions as d
from headway.config import live_adapter, parse_config
from headway.errors import UserError
from headway.model import ClusterDescription

SLURM = "{adapter: slurm, options: {partitions: [batch]}}"


def test_each_cluster_is_an_adapter_with_options_of_its_own() -> None:
    other = SLURM.replace("[batch]", "[long], power: true")
    text = f"clusters: {{siteA: {SLURM}, site-2: {other}}}"
    config = parse_config(text, "site.yaml")
    with live_adapter(config, read_only=True) as adapter:
        assert list(adapter._members) == ["siteA", "site-2"]
        assert adapter._members["site-2"].adapter.options.partitions == ("long",)
        assert all(member.adapter.read_only for member in adapter._members.values())
        assert d.PowerDown in adapter.capabilities
        assert d.PowerDown not in adapter._members["siteA"].adapter.capabilities
    assert d.Start in config.capabilities(ClusterDescription.flat(1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"cluster: {SLURM}\nclusters: {{siteA: {SLURM}}}",
            "site.yaml: expected either cluster (for a single cluster) or clusters (for several), found both",
        ),
        (f"clusters: {{'a:b': {SLURM}}}", "site.yaml: clusters.a:b"),
        (f"clusters: {{job_x: {SLURM}}}", "site.yaml: clusters.job_x"),
        ("clusters: {siteA: slurm}", "site.yaml: clusters.siteA: expected keys and values, found 'slurm'"),
        (
            "clusters: {siteA: {adapter: slrum}}",
            "site.yaml: clusters.siteA.adapter: no adapter is called 'slrum'. Did you mean 'slurm'? If its "
            "class is in a file, give that file: --adapter FILE.py",
        ),
        ("clusters: {siteA: {adaptor: slurm}}", "site.yaml: clusters.siteA.adaptor: unknown key"),
        (
            "clusters: {siteA: {adapter: emulated, options: {nodes: 4}}}",
            "site.yaml: clusters.siteA.options: adapter 'emulated' has no options, found nodes",
        ),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_config(text, "site.yaml")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("{adapter: slurm}", "site.yaml: clusters.siteB.options: partitions: expected a value, found none"),
        ("{adapter: emulated}", "site.yaml: clusters.siteB.adapter: expected a real cluster's adapter"),
        ("{adapter: federation}", "site.yaml: clusters.siteB.adapter: expected a real cluster's adapter"),
    ],
)
def test_one_that_is_wrong_is_named(cluster: str, said: str) -> None:
    config = parse_config(f"clusters: {{siteA: {SLURM}, siteB: {cluster}}}", "site.yaml")
    with pytest.raises(UserError) as raised:
        live_adapter(config, read_only=True)
    assert said in str(raised.value)


def test_a_federation_is_said_by_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = parse_config("cluster: {adapter: federation}", "site.yaml")
    with pytest.raises(UserError, match="expected a real cluster's adapter"):
        live_adapter(config, read_only=True)
