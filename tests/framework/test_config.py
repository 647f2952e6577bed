"""The configuration file: what it says, and what it is told when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.config import INSTALLED, Config, live_adapter, load_config, parse_config
from headway.errors import UserError
from headway.model.modes import Mode


def refused(text: str) -> str:
    with pytest.raises(UserError) as caught:
        config = parse_config(text, "site.yaml")
        config.plugin_configs()
    return str(caught.value)


def test_an_empty_file_is_easy_with_first_fit_that_changes_nothing() -> None:
    config = parse_config("")
    assert config.mode is Mode.MONITOR
    assert [plugin.name for plugin in config.plugin_configs()] == ["easy", "first-fit"]
    assert config.emulation.description() is None


def test_letters_are_off_until_a_command_names_the_user() -> None:
    assert parse_config("").letters.command == []
    config = parse_config('letters: {command: [mail, -s, "{subject}", --, "{user}"], hourly: 3}')
    assert (config.letters.command[2], config.letters.hourly, config.letters.timeout) == (
        "{subject}",
        3,
        30.0,
    )


@pytest.mark.parametrize(
    ("letters", "says"),
    [
        ("{command: [mail, -s, '{subject}']}", "expected {user} in the command, found none"),
        (
            "{command: [mail, '{user}', '{text}']}",
            "expected the placeholders {user}, {subject}, found {text}",
        ),
        ("{command: ['{user}', mail]}", "expected a program as the first word, found '{user}'"),
        ("{command: ['', '{user}']}", "expected a program as the first word, found ''"),
        ("{command: [bin/mail, '{user}']}", "a program by its name or its whole path, found 'bin/mail'"),
        ('{command: [mail, "{user}\\0"]}', "words cannot hold a null character"),
        ("{command: mail}", "letters.command: expected a list"),
        ("{timeout: 0}", "letters.timeout"),
        ("{hourly: 0}", "letters.hourly"),
        ("{to: ann}", "letters.to"),
    ],
)
def test_letters_that_cannot_be_sent_are_refused(letters: str, says: str) -> None:
    assert says in refused(f"letters: {letters}")


def test_plugins_are_names_or_names_with_options_in_the_order_of_the_file() -> None:
    config = parse_config("plugins: [one, {two: {depth: 3}}, {three: }]", "site.yaml")
    assert [(plugin.name, dict(plugin.options), plugin.where) for plugin in config.plugin_configs()] == [
        ("one", {}, "site.yaml: plugins[0]"),
        ("two", {"depth": 3}, "site.yaml: plugins[1]"),
        ("three", {}, "site.yaml: plugins[2]"),
    ]


def test_nodes_are_numbered_from_one_in_the_order_of_the_kinds() -> None:
    config = parse_config(
        "emulation: {nodes: [{count: 2, processors: 8, memory: 64, gres: {gpu: 2}, features: [fast]},"
        " {count: 1, processors: 4}, {count: 1, processors: 1, prefix: fat, pool: big}]}"
    )
    cluster = config.emulation.description()
    assert cluster is not None
    assert [(node.name, node.processors, node.pools) for node in cluster.nodes] == [
        ("n1", 8, ("pool",)), ("n2", 8, ("pool",)), ("n3", 4, ("pool",)), ("fat1", 1, ("big",)),
    ]  # fmt: skip
    assert cluster.nodes[0].memory == 64
    assert cluster.nodes[0].gres == (("gpu", 2),)
    assert cluster.nodes[0].features == ("fast",)
    assert [pool.name for pool in cluster.pools] == ["pool", "big"]


def test_a_number_of_processors_makes_a_flat_machine_and_wins_over_nodes_when_asked_for() -> None:
    flat = parse_config("emulation: {processors: 100}").emulation.description()
    assert flat is not None and flat.pools[0].processors == 100
    nodes = parse_config("emulation: {nodes: [{count: 2, processors: 8}]}").emulation
    asked = nodes.description(50)
    assert asked is not None and asked.nodes == () and asked.pools[0].processors == 50


def test_a_trace_is_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("emulation: {trace: logs/week.swf}")
    assert load_config(path).trace_path() == tmp_path / "logs" / "week.swf"
    path.write_text("emulation: {trace: /logs/week.swf}")
    assert load_config(path).trace_path() == Path("/logs/week.swf")


def test_the_text_is_kept_for_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("seed: 5  # mine\n")
    assert load_config(path).text == "seed: 5  # mine\n"
    assert load_config(path).source == str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: drvie", "site.yaml: mode: expected 'drive', 'monitor' or 'dry-run', found 'drvie'"),
        ("pluginz: [easy]", "site.yaml: pluginz: unknown key. Did you mean 'plugins' or 'links'?"),
        ("log: {levl: debug}", "site.yaml: log.levl: unknown key. Did you mean 'level'?"),
        ("journal: 3", "site.yaml: journal: expected a text, found 3"),
        ("seed: many", "site.yaml: seed: expected a whole number, found 'many'"),
        ("seed: -1", "site.yaml: seed: expected greater than or equal to 0, found -1"),
        ("cluster: slurm", "site.yaml: cluster: expected keys and values, found 'slurm'"),
        (
            "cluster: {adapter: slrum}",
            "site.yaml: cluster.adapter: no adapter is called 'slrum'. Did you mean 'slurm'? If its class is "
            "in a file, give that file: --adapter FILE.py",
        ),
        (
            "cluster: {adapter: emulated, options: {nodes: 4}}",
            "site.yaml: cluster.options: adapter 'emulated' has no options, found nodes",
        ),
        ("plugins: easy", "site.yaml: plugins: expected a list, found 'easy'"),
        (
            "plugins: [easy, 3]",
            "site.yaml: plugins[1]: expected a plugin's name, or a name with its options (- easy, or - "
            "name: {key: value}), found 3",
        ),
        (
            "plugins: [{easy: {}, fcfs: {}}]",
            "site.yaml: plugins[0]: expected a plugin's name, or a name with its options (- easy, or - "
            "name: {key: value}), found {'easy': {}, 'fcfs': {}}",
        ),
        (
            "plugins: [{easy: 5}]",
            "site.yaml: plugins[0]: expected the options of 'easy' as keys and values, found {'easy': 5}",
        ),
        (
            "emulation: {nodes: [{count: 0, processors: 1}]}",
            "site.yaml: emulation.nodes[0].count: expected greater than or equal to 1, found 0",
        ),
        (
            "emulation: {nodes: [{count: 1, procesors: 1, processors: 1}]}",
            "site.yaml: emulation.nodes[0].procesors: unknown key. Did you mean 'processors'?",
        ),
        (
            "emulation: {nodes: [{processors: 1}]}",
            "site.yaml: emulation.nodes[0].count: expected a value, found none",
        ),
        (
            "emulation: {nodes: [{count: 1, processors: 1, clas: I}]}",
            "site.yaml: emulation.nodes[0].clas: unknown key. Did you mean 'class'?",
        ),
        (
            r'emulation: {nodes: [{count: 1, processors: 1, pool: [a, "b\nc"]}]}',
            r"site.yaml: emulation.nodes[0].pool: expected names without line breaks, found ['a', 'b\nc']",
        ),
        (
            "emulation: {nodes: [{count: 1, processors: 1, pool: ' '}]}",
            "site.yaml: emulation.nodes[0].pool: expected names without line breaks, found ' '",
        ),
        ("1: 2", "site.yaml: [1]: expected a text as key, found 1"),
        ("- easy", "site.yaml: expected keys such as mode, cluster, plugins; found a list"),
        ("easy", "site.yaml: expected keys such as mode, cluster, plugins; found 'easy'"),
    ],
)
def test_a_wrong_value_is_told_with_its_key_what_was_expected_and_what_was_found(
    text: str, message: str
) -> None:
    assert refused(text) == message


def test_both_a_flat_machine_and_nodes_are_refused() -> None:
    said = refused("emulation: {processors: 4, nodes: [{count: 1, processors: 4}]}")
    assert said.startswith(
        "site.yaml: emulation: expected either processors (a flat pool) or nodes, not both"
    )


def test_every_mistake_is_told_at_once() -> None:
    assert refused("mode: x\nseed: y\nlog: {format: z}").count("\n") == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mode: [drive\nseed: 3", "site.yaml, line 2, column 5: not valid YAML: "),
        ("mode: drive\n\tseed: 3", "site.yaml, line 2, column 1: not valid YAML: "),
        ("a: !!python/object:os.system {}", "site.yaml, line 1, column 4: not valid YAML: "),
        ("a:\n  b: 2026-02-30", "site.yaml, line 2, column 6: not valid YAML: '2026-02-30' is no timestamp"),
        ("a: 2026-01-01 25:00:00", "site.yaml, line 1, column 4: not valid YAML: '2026-01-01 25:00:00' is"),
        (f"a: {'9' * 5000}", "site.yaml, line 1, column 4: not valid YAML: '999"),
        ("a: !!bool perhaps", "site.yaml, line 1, column 4: not valid YAML: 'perhaps' is no bool"),
        ("a: !!timestamp x", "site.yaml, line 1, column 4: not valid YAML: 'x' is no timestamp"),
        (f"a: {'[' * 3000}{']' * 3000}", "site.yaml: not valid YAML: it is nested too deeply"),
    ],
)
def test_invalid_yaml_is_told_with_its_line(text: str, place: str) -> None:
    assert refused(text).startswith(place)


def test_a_key_that_is_there_twice_is_not_silently_dropped() -> None:
    assert refused("mode: drive\nseed: 1\nmode: monitor\n") == (
        "site.yaml, line 3, column 1: not valid YAML: the key 'mode' is there already, in line 1"
    )
    assert "line 4" in refused("cluster:\n  options:\n    a: 1\n    a: 2\n")


def test_merged_keys_may_be_overridden() -> None:
    config = parse_config("emulation: {nodes: [&small {count: 1, processors: 4}, {<<: *small, count: 3}]}")
    assert [kind.count for kind in config.emulation.nodes] == [1, 3]


def test_a_missing_a_binary_and_an_unreadable_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.yaml: expected a configuration file, found no such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="the configuration cannot be read: Is a directory"):
        load_config(tmp_path)
    path = tmp_path / "site.yaml"
    path.write_bytes(b"mode: drive\nseed: \xff\n")
    with pytest.raises(
        UserError, match=r"site\.yaml, line 2: expected a text file in UTF-8, found byte 0xff"
    ):
        load_config(path)


def test_adapters_are_found_by_name() -> None:
    assert {"emulated", "slurm"} <= set(INSTALLED.names())
    assert INSTALLED.get("emulated").__name__ == "EmulatedAdapter"


def test_an_emulated_cluster_is_no_live_one() -> None:
    with pytest.raises(UserError, match=r"expected a real cluster's adapter .* found 'emulated'"):
        live_adapter(Config(), read_only=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{}", "site.yaml: cluster.options: partitions: expected a value, found none"),
        ("{partitions: batch}", "site.yaml: cluster.options: partitions: expected a list, found 'batch'"),
        ("{partitions: [a], poll_intervall: 1}", "poll_intervall: unknown key. Did you mean 'poll_interval'"),
        ("{partitions: [a], poll_interval: 0}", "poll_interval: expected greater than 0, found 0"),
        (
            "{partitions: ['a b']}",
            "partitions: expected names of partitions (letters, digits, '_', '-', '.'), found",
        ),
        ("{partitions: [a, a]}", "partitions: expected each partition once, found"),
    ],
)
def test_the_adapters_own_options_are_checked(options: str, message: str) -> None:
    config = parse_config(f"cluster: {{adapter: slurm, options: {options}}}", "site.yaml")
    with pytest.raises(UserError) as caught:
        live_adapter(config, read_only=True)
    assert message in str(caught.value)
