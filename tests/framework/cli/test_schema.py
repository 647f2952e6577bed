"""`headway schema`: what editors know of a configuration, and programs of `--json`."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from headway.config import INSTALLED, parse_config
from headway.config.schema import configuration_schema
from headway.errors import UserError
from headway.plugins import Catalogue, Plugins

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    schema = configuration_schema(Catalogue(), INSTALLED)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def as_an_editor_reads(value: Any) -> Any:
    """YAML as JSON has it: dates are texts, keys are texts."""
    if isinstance(value, dict):
        return {str(key): as_an_editor_reads(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_an_editor_reads(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def mistakes(validator: Draft7Validator, text: str) -> list[str]:
    """Where the schema finds mistakes."""
    found = validator.iter_errors(as_an_editor_reads(yaml.safe_load(text) or {}))
    return ["/".join(map(str, error.absolute_path)) or error.message for error in found]


SHIPPED = sorted(
    path
    for path in ROOT.glob("etc/*/*.yaml")
    if re.search(r"^(mode|cluster|plugins):", path.read_text(), re.M)
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_shipped_configuration_is_right(validator: Draft7Validator, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    parse_config(text, str(path))
    assert mistakes(validator, text) == []


def documented() -> list[Any]:
    """The configurations of the pages that the loader takes, and whose plugins are installed."""
    found, catalogue = [], Catalogue()
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
        blocks = re.findall(
            r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        for number, block in enumerate(blocks):
            try:
                configs = parse_config(block).plugin_configs()
                Plugins.load(catalogue.enabled(configs), catalogue, None)
            except UserError:
                continue
            found.append(pytest.param(block, id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("text", documented())
def test_a_configuration_of_the_pages_is_right(validator: Draft7Validator, text: str) -> None:
    assert mistakes(validator, text) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("moed: drive", "moed"),
        ("mode: drives", "mode"),
        ("seed: many", "seed"),
        ("plugins: [eazy]", "plugins/0"),
        ("plugins: [{easy: {depht: 1}}]", "plugins/0"),
        ("plugins: [{multifactor: {weights: 5}}, {nothing: {}}]", "plugins/1"),
        ("cluster: {adapter: slurm, options: {partition: [batch]}}", "cluster/options"),
        (
            "cluster: {adapter: slurm, options: {partitions: [batch], poll_interval: -1}}",
            "cluster/options/poll_interval",
        ),
        ("cluster: {adapter: slrum}", "cluster/adapter"),
        ("clusters: {a: {adapter: pbs, options: {partitions: [x]}}}", "clusters/a/options"),
        ("service: {sokcet: /run/x}", "service"),
    ],
)
def test_a_mistake_is_found(validator: Draft7Validator, text: str, where: str) -> None:
    assert any(where in found for found in mistakes(validator, text))


@pytest.mark.parametrize(
    "text",
    [
        "cycle: 10s",
        "cycle: 10",
        "plugins: [easy: ]",
        "plugins: ['easy++', {'easy++': {}}]",
        "plugins: [{fair-tree: {accounts: from-slurm, half_life: 14d}}]",
        "cluster: {adapter: slurm, options: {partitions: [batch], accounting: yes}}",
        "cluster: {adapter: slurm, options: {partitions: [a], ssh: {host: h, proxy_jump: 'a@b, c'}}}",
    ],
)
def test_what_headway_takes_is_no_mistake(validator: Draft7Validator, text: str) -> None:
    parse_config(text)
    assert mistakes(validator, text) == []


def test_options_say_what_they_are(validator: Draft7Validator) -> None:
    definitions = validator.schema["$defs"]
    slurm = definitions["adapter slurm"]["properties"]
    assert slurm["poll_interval"]["description"] == "Between two looks at the cluster when nothing was done."
    names = [
        one["const"] for one in validator.schema["properties"]["plugins"]["items"]["anyOf"] if "const" in one
    ]
    assert names == sorted(names) and {"easy", "multifactor", "like-slurm"} <= set(names)


def test_it_is_the_same_each_time(headway_process) -> None:
    first, second = headway_process("schema"), headway_process("schema", PYTHONHASHSEED="7")
    assert first.code == 0 and first.out == second.out
    assert json.loads(first.out)["$schema"].startswith("http://json-schema.org/draft-07")


def test_plugins_of_a_file_are_in_it(headway, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import pydantic\nfrom headway.hookspecs import hookimpl\n\n\nclass Mine:\n"
        "    class Options(pydantic.BaseModel):\n"
        "        depth: int = 1\n\n    @hookimpl\n    def queue_key(self, job):\n        return (job.id,)\n"
    )
    schema = json.loads(headway("schema", "--plugin", "mine.py").out)
    assert mistakes(Draft7Validator(schema), "plugins: [{mine: {depth: 2}}]") == []
    assert mistakes(Draft7Validator(schema), "plugins: [{mine: {depth: x}}]") == ["plugins/0"]


def test_of_a_command_it_is_that_of_its_json(headway) -> None:
    told = headway("schema", "status")
    assert told.code == 0 and "$ref" in json.loads(told.out)
    listed = headway("schema", "--list").out.splitlines()
    assert {"status", "init"} <= set(listed) and listed == sorted(listed)
    for line in listed:
        assert headway("schema", *line.split()).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stauts"], "'status'"),
        (["run"], "--json"),
        (["status", "more"], "no command is called 'status more'"),
    ],
)
def test_a_command_that_has_none(headway, words: list[str], message: str) -> None:
    told = headway("schema", *words)
    assert told.code == 2 and message in told.err
