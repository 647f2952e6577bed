"""`headway init`: the files for a site, from commands that print what batch systems print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import structlog
from emulated_commands import Commands

from headway.cli import cli, main
from headway.cli.init import _groups
from headway.config import live_options, load_config
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway_adapters.commands import Emulator, EmulatorOptions
from headway_adapters.site_init import slurm as of_slurm
from headway_adapters.site_init.configuration import inline
from headway_adapters.site_init.page import plain
from headway_adapters.site_init.unit import word
from headway_adapters.slurm.submit_filter import _table

FIXTURES = Path(__file__).parents[1] / "slurm" / "fixtures" / "slurm-22.05"

#: The partitions that were recorded.
ALL = ("batch", "fg", "bg", "parked", "closed")
#: A Slurm's commands that print recorded answers; ``{config}`` and ``{partitions}`` are files.
SCRIPT = """#!/bin/sh
case "$*" in
    *--version*) echo "slurm-wlm 22.05.8";;
    *"show config"*) cat {config};;
    *"show partition"*) cat {partitions};;
    *"show reservation"*) cat {recorded}/show-reservations-oneline.txt;;
    *"show node"*) cat {recorded}/show-nodes-oneline.txt;;
    *ping*) echo "Slurmctld(primary) at elsewhere is UP";;
    *--json*) cat {recorded}/$(basename $0).json;;
esac
"""


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("SLURM_CONF", "PBS_CONF_FILE", "LSF_ENVDIR", "LSF_BINDIR", "LSF_SERVERDIR", "LSF_LIBDIR"):
        monkeypatch.delenv(name, raising=False)
    yield
    structlog.reset_defaults()


@pytest.fixture
def headway(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls the command line: exit code, output, errors."""

    def run(*words: object) -> tuple[int, str, str]:
        code: Any = 0
        try:
            main([str(one) for one in words])
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def slurm(tmp_path: Path) -> Callable[..., Path]:
    """Makes a Slurm's commands: their folder. ``config``: key -> value, in the place of what was recorded."""

    def make(config: dict[str, str] | None = None, partitions: str = "", script: str = "") -> Path:
        recorded = (FIXTURES / "show-config.txt").read_text().splitlines()
        kept = [line for line in recorded if line.partition("=")[0].strip() not in (config or {})]
        told = [f"{key} = {value}" for key, value in (config or {}).items()]
        (tmp_path / "config").write_text("\n".join([*kept, *told]) + "\n")
        text = (FIXTURES / "show-partitions-oneline.txt").read_text()
        (tmp_path / "partitions").write_text(text + partitions)
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        written = script or SCRIPT.format(
            config=tmp_path / "config", partitions=tmp_path / "partitions", recorded=FIXTURES
        )
        for name in ("squeue", "sinfo", "scontrol", "scancel", "sacct", "sdiag", "sacctmgr", "sshare"):
            (folder / name).write_text(written)
            (folder / name).chmod(0o755)
        return folder

    return make


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Callable[..., Commands]]:
    """Starts the emulated commands of a PBS or LSF."""
    started: list[Emulator] = []

    def start(system: str, **options: Any) -> Commands:
        emulator = Emulator(tmp_path / f"emulated-{system}", EmulatorOptions(system, **options))
        emulator.__enter__()
        started.append(emulator)
        return Commands(emulator)

    yield start
    for emulator in started:
        emulator.__exit__(None, None, None)


def readable(path: Path) -> dict[str, Any]:
    """The options of the cluster, as `headway check` reads them."""
    config = load_config(path)
    _, options = live_options(config.adapters, config.cluster, "cluster")
    return options.model_dump()


def commands_of(page: str) -> list[list[str]]:
    """The words of each command of a page."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]


def steps_of(page: str) -> list[str]:
    return re.findall(r"^### \d+\. (.*)", page, re.MULTILINE)


# ---------------------------------------------------------------------- Slurm


def test_a_folder_for_slurm(headway, slurm):
    code, out, err = headway("init", "slurm", "--set", f"bin_dir={slurm()}", "--out", "site")
    assert code == 0, err
    site = Path("site")
    assert sorted(path.name for path in site.iterdir()) == [
        "README.md", "headway-give-back.service", "headway-give-back.timer", "headway.schema.json",
        "headway.service", "headway.yaml", "job_submit.lua", "slurm.conf.headway",
    ]  # fmt: skip
    assert "nothing was changed" in out and "Begin with site/README.md" in out
    config = load_config(site / "headway.yaml")
    assert config.mode == "monitor"
    assert readable(site / "headway.yaml")["partitions"] == ALL


def test_the_plugins_do_what_the_slurm_does(headway, slurm):
    folder = slurm({
        "PriorityType": "priority/multifactor", "PriorityWeightFairShare": "1000", "PriorityWeightAge": "10",
        "SchedulerParameters": "bf_window=2880",
    })  # fmt: skip
    headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    plugins = load_config("site/headway.yaml").plugins
    assert {"multifactor": {"weights": "from-slurm"}} in plugins
    assert {"limits": {"of": "from-slurm"}} in plugins
    assert {"fair-tree": {"accounts": "from-slurm", "ties": "as-slurm"}} in plugins
    (policy,) = (one["conservative"] for one in plugins if "conservative" in one)
    assert policy["window"] == 2880 * 60


def test_without_accounting_headway_runs_as_slurms_user(headway, slurm):
    folder = slurm({"AccountingStorageType": "accounting_storage/none", "SlurmUser": "slurmy(64030)"})
    headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    unit = Path("site/headway.service").read_text()
    gives = Path("site/headway-give-back.service").read_text()
    assert "\nUser=slurmy\n" in gives and "/bin/headway give-back --all --if-silent -c /etc/headway/" in gives
    assert "\nUser=slurmy\n" in unit and "# SlurmUser: without slurmdbd" in unit
    assert not any("from-slurm" in str(one) for one in load_config("site/headway.yaml").plugins)
    assert "sacctmgr" not in Path("site/README.md").read_text()


def test_a_silent_slurmdbd_is_remarked_and_left_out(headway, slurm, tmp_path):
    folder = slurm()
    (folder / "sacctmgr").write_text("#!/bin/sh\necho 'sacctmgr: error: no slurmdbd' >&2; exit 1\n")
    code, _, err = headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    assert code == 0 and "slurmdbd does not answer" in err
    assert not any("from-slurm" in str(one) for one in load_config("site/headway.yaml").plugins)


def test_lines_for_slurm_conf_keep_what_stands_there(headway, slurm):
    folder = slurm({
        "SchedulerParameters": "bf_window=2880,batch_sched_delay=2", "JobSubmitPlugins": "throttle",
        "MinJobAge": "60 sec",
    })  # fmt: skip
    headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    lines = Path("site/slurm.conf.headway").read_text().splitlines()
    assert "SchedulerParameters=bf_window=2880,batch_sched_delay=0" in lines
    assert "JobSubmitPlugins=throttle,lua" in lines
    assert "MinJobAge=300" in lines


def test_a_filter_of_the_sites_is_not_replaced_silently(headway, slurm):
    folder = slurm({"JobSubmitPlugins": "lua"})
    headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    assert "There is a `job_submit.lua` already" in Path("site/README.md").read_text()


def test_the_filter_names_the_partitions():
    config = {"StateSaveLocation": "/var/spool/slurmctld", "SlurmUser": "slurm(64030)"}
    text = of_slurm.submit_filter(["batch", "my-gpu.2"], "/run/headway/heartbeat", config)
    assert 'local MANAGED = { ["batch"] = true, ["my-gpu.2"] = true }' in text
    assert _table("MANAGED", text) == ["batch", "my-gpu.2"]
    assert 'local FENCE = "/var/spool/slurmctld/headway.epoch"' in text
    assert "local LEADERS = { [0] = true, [64030] = true }" in text
    # What could end a string stays out of it.
    odd = of_slurm.submit_filter(["batch"], "", {"StateSaveLocation": '/a"b', "SlurmUser": "x(0)"})
    assert 'local FENCE = "/var/lib/slurm/slurmctld/headway.epoch"' in odd and "{ [0] = true }" in odd


#: Partitions that Slurm may have, each with a name that could end a string in YAML, Lua or a shell.
HOSTILE = "".join(
    f"PartitionName={name} AllowGroups=ALL Nodes=node1 State=UP\n"
    for name in ("a'b", 'c"d', "e;rm", "f$(id)", "g`h`", "-rf", "x{y}", "no\x1b[31m")
)


def test_names_that_could_command_something_are_left_out(headway, slurm):
    folder = slurm(partitions=HOSTILE)
    code, out, err = headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    assert code == 0
    assert readable(Path("site/headway.yaml"))["partitions"] == ALL
    assert err.count("is left out") == HOSTILE.count("\n") and "\x1b[31m" not in out + err
    written = "".join(path.read_text() for path in Path("site").iterdir())
    assert "\x1b" not in written
    script = Path("site/job_submit.lua").read_text()
    assert _table("MANAGED", script) == list(ALL)
    assert not any("rm" in words or "$(id)" in " ".join(words) for words in commands_of(written))


def test_a_partition_is_chosen(headway, slurm):
    more = "PartitionName=debug AllowGroups=ALL Nodes=node[1-2] MaxTime=01:00:00 State=UP\n"
    folder = slurm(partitions=more)
    asked = ("init", "slurm", "--set", f"bin_dir={folder}", "--json")
    code, out, _ = headway(*asked, "--partitions", "debug", "--out", "site")
    assert code == 0
    assert readable(Path("site/headway.yaml"))["partitions"] == ("debug",)
    assert {pool["name"]: pool["managed"] for pool in json.loads(out)["pools"]}["debug"]
    code, _, err = headway(*asked, "--partitions", "debgu", "--out", "other")
    assert code == 2 and "'debug'" in err and not Path("other").exists()


def test_a_terminal_is_asked_where_partitions_do_not_share_nodes(headway, slurm, monkeypatch):
    """The recorded partitions are over the same nodes but for some; a script is never asked."""
    asked: list[str] = []
    answers = iter(["fg,bg"])

    def prompt(text: str, **_: Any) -> str:
        asked.append(text)
        return next(answers)

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr("headway.cli.init._groups", lambda cluster, pools: [["batch"], ["fg", "bg"]])
    folder = slurm()
    assert headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "script")[0] == 0
    assert asked == []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")[0] == 0
    assert len(asked) == 1 and "partitions" in asked[0]
    assert readable(Path("site/headway.yaml"))["partitions"] == ("fg", "bg")


def test_partitions_that_share_nodes_are_a_group():
    nodes = [
        NodeDescription("n1", 4, pools=("a", "b")),
        NodeDescription("n2", 4, pools=("c",)),
        NodeDescription("n3", 4, pools=("b", "d")),
    ]
    pools = tuple(PoolDescription(name) for name in "abcd")
    cluster = ClusterDescription("tc", pools, tuple(nodes))
    assert sorted(_groups(cluster, ["a", "b", "c", "d"])) == [["a", "b", "d"], ["c"]]


def test_json_tells_what_was_found(headway, slurm):
    code, out, _ = headway("init", "slurm", "--set", f"bin_dir={slurm()}", "--out", "site", "--json")
    told = json.loads(out)
    assert code == 0 and told["system"] == "slurm" and told["title"] == "Slurm 22.05.8"
    assert told["settings"]["SchedulerType"].startswith("sched/")
    assert told["files"][0] == "headway.yaml" and told["folder"] == "site"
    assert told["pools"][0]["processors"] > 0
    assert any(check["subject"] == "jobs enter held" and check["driving"] for check in told["checks"])


def test_steps_come_in_a_safe_order(headway, slurm):
    headway("init", "slurm", "--set", f"bin_dir={slurm()}", "--out", "site")
    steps = steps_of(Path("site/README.md").read_text())
    order = ["Put the files", "Check", "Watch", "What would driving change", "Compare the policy",
             "Slurm's set-up and the submit filter", "Drive, for two hours", "Drive", "Back"]  # fmt: skip
    at = [next(number for number, step in enumerate(steps) if step.startswith(one)) for one in order]
    assert at == sorted(at)


def test_every_command_of_headways_in_the_page_is_there(headway, slurm):
    """Where a command is installed, its words parse."""
    headway("init", "slurm", "--set", f"bin_dir={slurm()}", "--out", "site")
    context, seen = click.Context(cli), 0
    for words in commands_of(Path("site/README.md").read_text()):
        at = next((at for at, one in enumerate(words) if one.endswith("/bin/headway")), None)
        if at is None:
            continue
        command = cli.get_command(context, words[at + 1])
        assert command is not None, words
        command.make_context(words[at + 1], words[at + 2 :], parent=context)
        seen += 1
    assert seen >= 8


# ---------------------------------------------------------------------- what goes wrong


def test_nothing_is_overwritten(headway, slurm):
    folder = slurm()
    Path("site").mkdir()
    Path("site/README.md").write_text("mine")
    code, _, err = headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    assert code == 2 and "README.md" in err and "nothing is overwritten" in err
    assert [path.name for path in Path("site").iterdir()] == ["README.md"]
    assert Path("site/README.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'slurm_load: error: Unable to contact slurm controller' >&2; exit 1", "Unable to contact"),
        ("sleep 60", "did not answer within 1 s"),
        ("exit 0", "expected Slurm's listing, found 'nothing'"),
        ("head -c 2000 /dev/urandom", "expected Slurm's listing"),
    ],
)
def test_a_cluster_without_an_answer(headway, slurm, script, message):
    folder = slurm(script=f"#!/bin/sh\n{script}\n")
    words = ("--set", f"bin_dir={folder}", "--set", "command_timeout=1", "--out", "site")
    code, _, err = headway("init", "slurm", *words)
    assert code == 1 and message in err
    assert not Path("site").exists()


def test_half_an_answer_writes_nothing(headway, slurm):
    """slurmctld answers, and the listing of nodes does not come."""
    folder = slurm()
    script = (folder / "scontrol").read_text().replace('*"show node"*) cat', '*"show node"*) exit 1; cat')
    (folder / "scontrol").write_text(script)
    code, _, err = headway("init", "slurm", "--set", f"bin_dir={folder}", "--out", "site")
    assert code == 1 and "scontrol" in err and not Path("site").exists()


def test_a_system_that_nobody_knows(headway):
    code, _, err = headway("init", "slrum")
    assert code == 2 and "'slurm'" in err


def test_an_option_that_the_adapter_has_not(headway, slurm):
    code, _, err = headway("init", "slurm", "--set", "bindir=x")
    assert code == 2 and "bindir" in err and "--set" in err


def test_no_commands_here(headway, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = headway("init", "--set", f"bin_dir={tmp_path / 'empty'}")
    assert code == 2 and "found none" in err and "squeue" in err and "qstat" in err


def test_the_system_is_found_by_its_commands(headway, slurm):
    code, out, _ = headway("init", "--set", f"bin_dir={slurm()}", "--out", "site")
    assert code == 0 and out.startswith("Slurm 22.05.8")


def test_a_user_that_is_none(headway, slurm):
    code, _, err = headway("init", "slurm", "--set", f"bin_dir={slurm()}", "--user", "a b")
    assert code == 2 and "--user" in err


def test_a_user_is_named(headway, slurm):
    folder = slurm()
    headway("init", "slurm", "--set", f"bin_dir={folder}", "--user", "nobody", "--out", "site")
    assert "\nUser=nobody\nGroup=nogroup\n" in Path("site/headway.service").read_text()
    assert "useradd" not in Path("site/README.md").read_text()


# ---------------------------------------------------------------------- PBS and LSF


def test_a_folder_for_pbs(headway, emulated):
    pbs = emulated("pbs", hosts=("pbshost",), vnodes=4, memory=16 << 30, scheduling=True)
    code, out, err = headway("init", "pbs", "--set", f"bin_dir={pbs.emulator.bin}", "--out", "site", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["title"].startswith("PBS ") and [pool["name"] for pool in told["pools"]] == ["workq"]
    assert readable(Path("site/headway.yaml"))["queues"] == ("workq",)
    page = Path("site/README.md").read_text()
    assert 'qmgr -c "set server scheduling = False"' in page
    assert "import hook headway_fence" in page and Path("site/headway_fence.py").is_file()
    assert page.index("scheduling = False") < page.index('scheduling = True"')
    assert "slurm" not in Path("site/headway.service").read_text().lower()


@pytest.mark.parametrize("flavour", ["volclava", "ibm"])
def test_a_folder_for_lsf(headway, emulated, flavour):
    more = {"flavour": "volclava", "name": "volclava"} if flavour == "volclava" else {}
    lsf = emulated("lsf", hosts=("lsfhost",), processors=2, **more)
    code, out, err = headway("init", "lsf", "--set", f"bin_dir={lsf.emulator.bin}", "--out", "site", "--json")
    assert code == 0, err
    told = json.loads(out)
    queues = [pool["name"] for pool in told["pools"]]
    assert readable(Path("site/headway.yaml"))["queues"] == tuple(queues)
    page = Path("site/README.md").read_text()
    assert f"badmin qinact {' '.join(queues)}" in page and "slurm" not in page.lower()


def test_a_daemon_watches_with_the_files(headway, emulated, tmp_path):
    """`headway check` takes the configuration that was written."""
    pbs = emulated("pbs", nodes=2)
    headway("init", "pbs", "--set", f"bin_dir={pbs.emulator.bin}", "--out", "site")
    path = Path("site/headway.yaml")
    moved = re.sub(r"(?m)^journal: .*", f"journal: {tmp_path / 'journal.db'}", path.read_text())
    path.write_text(moved)
    code, out, err = headway("check", "-c", path)
    assert code == 0, out + err


# ---------------------------------------------------------------------- what is quoted


@pytest.mark.parametrize(
    "value", ["a: b", "- x", "#", "'", '"', "yes", "1", "\u00fc", "a\nb", ["a", "b, c"], {"k": "v}"}]
)
def test_a_value_of_the_configuration_is_read_back(value):
    import yaml

    assert yaml.safe_load(f"key: {inline(value)}") == {"key": value}
    assert "\n" not in inline(value)


def test_what_a_cluster_says_is_text_on_the_page():
    assert plain("<script>`x`|[a](b)\n# y") == "\\<script\\>\\`x\\`\\|\\[a\\](b) # y"


def test_a_word_of_a_unit_is_one_word():
    assert word("/opt/headway/bin/headway") == "/opt/headway/bin/headway"
    assert word('/opt/a "b" %h $x') == '"/opt/a \\"b\\" %%h $$x"'
