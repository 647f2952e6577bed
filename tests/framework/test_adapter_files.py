"""``--adapter FILE.py``: an adapter of a file, which a configuration names."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pytest

from headway.config import INSTALLED, Adapters, Config, live_adapter, parse_config
from headway.errors import UserError

#: An adapter that has what it must have.
WHOLE = """
import pydantic
from headway.adapter import ClusterAdapter
from headway.decisions import Start
from headway.model import ClusterDescription

class Still(ClusterAdapter):
    class Options(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        processors: int = 4

    capabilities = frozenset({Start})

    def __init__(self, options, *, read_only=False, clock=None):
        self.options = options

    def describe(self):
        return ClusterDescription.flat(self.options.processors)

    def wait(self, deadline):
        return None

    def apply(self, now, decisions):
        return []
"""


@pytest.fixture
def still(tmp_path: Path) -> Path:
    return written(tmp_path / "still.py", WHOLE)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_configuration_names_it_by_its_file(still: Path) -> None:
    adapters = Adapters.with_files([still])
    config = parse_config("cluster: {adapter: still, options: {processors: 6}}", "site.yaml", adapters)
    assert config.adapters is adapters
    with live_adapter(config, read_only=True) as adapter:
        assert adapter.describe().pools[0].processors == 6
    with pytest.raises(UserError, match="processor: unknown key"):
        wrong = parse_config("cluster: {adapter: still, options: {processor: 6}}", "site.yaml", adapters)
        live_adapter(wrong, read_only=True)


def test_or_by_the_name_that_the_class_gives(tmp_path: Path) -> None:
    named = WHOLE.replace("    capabilities", '    name = "quiet"\n    capabilities')
    adapters = Adapters.with_files([written(tmp_path / "still.py", named)])
    assert "quiet" in adapters.names() and "still" not in adapters.names()
    assert adapters.get("quiet").__name__ == "Still"
    assert adapters.get("emulated") is INSTALLED.get("emulated")


def test_one_of_several_clusters_can_be_such_an_adapters(still: Path) -> None:
    text = "clusters: {a: {adapter: still}, b: {adapter: still, options: {processors: 8}}}"
    with live_adapter(
        parse_config(text, "site.yaml", Adapters.with_files([still])), read_only=True
    ) as adapter:
        assert {pool.name for pool in adapter.describe().pools} >= {"a:pool", "b:pool"}


def test_a_catalogue_is_not_changed_and_others_know_nothing_of_it(still: Path) -> None:
    adapters = Adapters.with_files([still])
    with pytest.raises(dataclasses.FrozenInstanceError):
        adapters.of_files = ()  # type: ignore[misc]
    assert "still" not in INSTALLED.names()
    assert Config().adapters is INSTALLED
    assert copy.deepcopy(adapters) == adapters


def test_without_the_file_a_configuration_is_told_to_give_it() -> None:
    with pytest.raises(UserError) as caught:
        parse_config("cluster: {adapter: slurmm}", "site.yaml")
    assert str(caught.value) == (
        "site.yaml: cluster.adapter: no adapter is called 'slurmm'. Did you mean 'slurm'? If its class "
        "is in a file, give that file: --adapter FILE.py"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "expected one class that extends headway.adapter.ClusterAdapter (such as a "
         "PollingAdapter), found none"),
        ("class Other: pass", "found other classes: Other"),
        # What is imported is not of this file.
        ("from headway.adapter import ClusterAdapter", "found none"),
        (WHOLE + "class Second(Still): pass\nclass Third(Still): pass", "found Second, Third"),
        (WHOLE.replace("def wait", "def wait_long"), "class 'Still' lacks the method wait"),
        (WHOLE.replace("Options(pydantic", "Settings(pydantic"), "lacks Options, a pydantic model of"),
        (WHOLE.replace("{Start}", "()"), "lacks Start among its capabilities"),
        (WHOLE.replace(", clock=None", ""), "lacks a constructor (options, *, read_only=False, clock=None): "
         "got an unexpected keyword argument 'clock'"),
        ("from headway_adapters.polling import PollingAdapter\nclass P(PollingAdapter): pass",
         "lacks the method carry_out; the method learn; the method look; the method start_all; Options, a "
         "pydantic model of cluster.options; Start among its capabilities; a constructor"),
        ("from headway_adapters.polling import PollingAdapter\nclass P(PollingAdapter): pass",
         'system = "...", the word for the system in the log; title = "...", the system\'s name for people'),
        ("def (", "still.py, line 1: does not load: SyntaxError"),
        ("import nosuchmodule", "still.py, line 1: does not load: ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "still.py", text)
    with pytest.raises(UserError) as caught:
        Adapters.with_files([path])
    assert str(caught.value).startswith(f"--adapter {path}")
    assert message in str(caught.value)


def test_a_class_that_another_extends_is_a_part_of_it(tmp_path: Path) -> None:
    path = written(tmp_path / "still.py", WHOLE + "class Stiller(Still): pass")
    assert Adapters.with_files([path]).get("still").__name__ == "Stiller"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--adapter .*no\.py: expected a Python file, found no such file"):
        Adapters.with_files([tmp_path / "no.py"])


@pytest.mark.parametrize("name", ["slurm", "still"])
def test_a_name_that_is_taken(tmp_path: Path, still: Path, name: str) -> None:
    (tmp_path / "b").mkdir()
    second = written(tmp_path / "b" / f"{name}.py", WHOLE)
    by = str(still) if name == "still" else "headway_adapters.slurm:SlurmAdapter"
    with pytest.raises(UserError, match="give the class another") as caught:
        Adapters.with_files([still, second])
    assert f"--adapter {second}: the name {name!r} is taken by" in str(caught.value)
    assert by in str(caught.value)
