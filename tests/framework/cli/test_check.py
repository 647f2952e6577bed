"""``headway check``: is everything there?"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from commandline import Headway

from headway.cli import check
from headway.journal import Journal
from headway.plugins import PluginConfig, catalogue, enabled
from headway_adapters.commands.emulator import Emulator, EmulatorOptions


@pytest.fixture
def config(tmp_path: Path, trace: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(
        "mode: dry-run\nplugins: [easy, best-fit]\nemulation: {trace: small.swf}\njournal: j.db\n"
    )
    return path


def lines(out: str) -> dict[str, str]:
    """Subject -> verdict of the printed table."""
    return {words[1]: words[0] for line in out.splitlines() if (words := line.split())[0] in ("ok", "FAIL")}


def test_all_is_in_order(headway: Headway, config: Path, tmp_path: Path) -> None:
    ran = headway("check", "-c", config)
    assert (ran.code, ran.err) == (0, "")
    assert lines(ran.out) == dict.fromkeys(
        ["configuration", "plugins", "capabilities", "journal", "trace"], "ok"
    )
    assert "easy, best-fit" in ran.out
    assert not (tmp_path / "j.db").exists(), "nothing is made"


def test_a_journal_without_a_directory_and_a_trace_that_is_gone_fail_with_a_remedy(
    headway: Headway, config: Path, trace: Path, tmp_path: Path
) -> None:
    trace.unlink()
    config.write_text(config.read_text().replace("j.db", f"{tmp_path}/no/j.db"))
    ran = headway("check", "-c", config)
    assert ran.code == 1
    assert lines(ran.out)["journal"] == lines(ran.out)["trace"] == "FAIL"
    assert f"→mkdir-p{tmp_path}/no" in "".join(ran.out.split())
    assert "→ correct emulation.trace" in ran.out


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("/bin/cat", 0, "ok letters /bin/cat {user} (/bin/cat)"),
        ("cat", 0, "ok letters cat {user} (/"),
        ("/no/mailer", 1, "FAIL letters /no/mailer does not exist"),
        ("/etc/passwd", 1, "FAIL letters /etc/passwd is not executable"),
        ("no-mailer", 1, "FAIL letters no program 'no-mailer' is in PATH (/"),
    ],
)
def test_the_command_for_letters_must_be_there(
    headway: Headway, config: Path, command: str, code: int, says: str
) -> None:
    config.write_text(config.read_text() + f"letters: {{command: [{command}, '{{user}}']}}\n")
    ran = headway("check", "-c", config)
    assert ran.code == code and says in " ".join(ran.out.split())
    assert ("correct letters.command" in " ".join(ran.out.split())) == bool(code)


def test_a_second_policy_is_said_to_be_asked_after_the_first(headway: Headway, config: Path) -> None:
    config.write_text(config.read_text().replace("best-fit", "fcfs"))
    assert "easy; only where it gives no answer: fcfs" in headway("check", "-c", config).out


def test_a_second_placement_too(headway: Headway, config: Path) -> None:
    config.write_text(config.read_text().replace("best-fit", "first-fit, dvfs") + "energy: present-day\n")
    assert headway("check", "-c", config).code == 2
    config.write_text(config.read_text().replace("energy: present-day", "energy: {profile: present-day}"))
    out = " ".join(headway("check", "-c", config).out.split())
    assert "ok placement first-fit; only where it gives no answer: dvfs" in out
    assert "ok energy profile present-day, classes node" in out


def test_a_plugin_that_needs_an_energy_profile_is_refused_without_one(headway: Headway, config: Path) -> None:
    config.write_text(config.read_text().replace("best-fit", "{power-cap: {watts: 900}}"))
    ran = headway("check", "-c", config)
    assert ran.code == 2
    assert "site.yaml: plugins[1]: plugin 'power-cap' needs an energy profile" in ran.err


def test_a_cluster_is_looked_at_and_not_changed(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    config = pretended_slurm()
    for program in (tmp_path / "bin").iterdir():
        text = program.read_text().replace(
            "#!/bin/sh\n", f'#!/bin/sh\necho "$(basename $0) $*" >> {tmp_path}/asked\n'
        )
        program.write_text(text)
    ran = headway("check", "-c", config)
    assert {"partition", "SchedulerType"} <= set(lines(ran.out))
    asked = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked
    for words in asked:
        assert (
            "--version" in words or words[0] in ("squeue", "sinfo", "sdiag") or {"show", "ping"} & set(words)
        )


@pytest.mark.parametrize("mode", ["monitor", "drive"])
def test_what_only_driving_needs_is_for_later_while_it_only_watches(
    headway: Headway, pretended_slurm: Callable[..., Path], mode: str
) -> None:
    config = pretended_slurm()
    config.write_text(config.read_text().replace("mode: monitor", f"mode: {mode}"))
    ran = headway("check", "-c", config)
    word = "later" if mode == "monitor" else "FAIL"
    assert re.search(f"^{word} +jobs enter held", ran.out, re.MULTILINE), ran.out
    others = re.search("^FAIL", ran.out, re.MULTILINE)
    assert ran.code == (1 if others else 0)


@pytest.mark.parametrize("mode", ["monitor", "drive"])
@pytest.mark.parametrize(
    ("system", "queue", "needed"),
    [("pbs", "workq", ["server scheduling", "queue workq"]), ("lsf", "normal", ["queue normal"])],
)
def test_and_so_is_what_pbs_and_lsf_are_changed_for(
    headway: Headway, tmp_path: Path, system: str, queue: str, needed: list[str], mode: str
) -> None:
    site = tmp_path / "site.yaml"
    with Emulator(tmp_path / system, EmulatorOptions(system, scheduling=True)) as emulator:
        if system == "pbs":
            qmgr = [str(emulator.bin / "qmgr"), "-c", f"set queue {queue} started = False"]
            subprocess.run(qmgr, check=True)
        site.write_text(
            f"plugins: [easy]\njournal: {tmp_path}/j.db\nmode: {mode}\n"
            f"cluster: {{adapter: {system}, options: {{queues: [{queue}], bin_dir: {emulator.bin}}}}}\n"
        )
        ran = headway("check", "-c", site)
        word = "later" if mode == "monitor" else "FAIL"
        assert re.findall(rf"^{word} +(\S+(?: \S+)*)  ", ran.out, re.MULTILINE) == needed, ran.out
        assert ran.code == (0 if mode == "monitor" else 1)
        # A queue that does not exist is a mistake in any mode.
        site.write_text(site.read_text().replace(f"[{queue}]", f"[{queue}, nihgt]"))
        ran = headway("check", "-c", site)
        assert re.search("^FAIL +queue nihgt", ran.out, re.MULTILINE) and ran.code == 1


@pytest.mark.parametrize("script", ["exit 1", "head -c 3000 /dev/urandom", "echo '{garbage'"])
def test_a_cluster_that_does_not_work_fails_in_a_few_readable_lines(
    headway: Headway, pretended_slurm: Callable[..., Path], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long the name of the test's directory is.
    monkeypatch.setenv("COLUMNS", "200")
    ran = headway("check", "-c", pretended_slurm(script))
    assert ran.code == 1
    assert re.search("^FAIL +slurm's commands", ran.out, re.MULTILINE)
    assert len(ran.out.splitlines()) < 30
    assert all(character.isprintable() for character in ran.out.replace("\n", ""))


def test_commands_that_are_not_installed(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    config = pretended_slurm()
    (tmp_path / "bin" / "squeue").unlink()
    ran = headway("check", "-c", config)
    assert ran.code == 1
    assert "the program 'squeue' is not installed" in ran.out
    assert "→ install Slurm's client commands where they run, or set" in ran.out


def test_what_options_add_to_a_cluster_counts(
    headway: Headway, pretended_slurm: Callable[..., Path], config: Path, trace: Path
) -> None:
    site = pretended_slurm()
    site.write_text(site.read_text() + "plugins: [easy, first-fit, power-down]\n")
    refused = headway("check", "-c", site)
    assert refused.code == 2 and "power-down" in refused.err and "PowerDown" in refused.err
    site.write_text(site.read_text().replace("    partitions:", "    power: true\n    partitions:"))
    ran = headway("check", "-c", site)
    assert lines(ran.out)["capabilities"] == "ok" and "PowerDown" in ran.out
    text = config.read_text().replace("[easy", "[power-down, easy")
    config.write_text(text + "energy: {profile: present-day}\n")
    assert lines(headway("check", "-c", config).out)["capabilities"] == "ok"


def test_the_options_of_each_plugin_are_read_once_and_it_is_made_once(
    headway: Headway, pretended_slurm: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making one may take long: it reads files, or learns from them."""
    site = pretended_slurm()
    site.write_text(site.read_text() + "plugins: [easy, first-fit]\n")
    made, make = [], catalogue.make_plugin

    def counted(kind: type, config: PluginConfig, *more: object) -> object:
        made.append(config.name)
        return make(kind, config, *more)

    read, validated = [], catalogue.options_of

    def noted(kind: type, config: PluginConfig, *more: object) -> object:
        read.append(config.name)
        return validated(kind, config, *more)

    monkeypatch.setattr(enabled, "make_plugin", counted)
    monkeypatch.setattr(catalogue, "options_of", noted)
    headway("check", "-c", site)
    assert made == read == ["easy", "first-fit"]


def test_partitions_of_nodes_that_nobody_may_put_to_sleep_fail_with_the_option(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    site = pretended_slurm()
    site.write_text(site.read_text() + "plugins: [easy, partitions]\n")
    ran = headway("check", "-c", site)
    assert ran.code == 1
    said = " ".join(ran.out.split())
    assert "FAIL plugins plugin 'partitions': expected a machine of wired partitions" in said
    assert "cluster.options.power" in said
    site.write_text(site.read_text().replace("    partitions:", "    power: true\n    partitions:"))
    assert "plugin 'partitions'" not in headway("check", "-c", site).out


def test_a_plugin_that_this_cluster_cannot_serve_fails_once_it_was_asked(
    headway: Headway, tmp_path: Path
) -> None:
    site = tmp_path / "lsf.yaml"
    with Emulator(tmp_path / "lsf", EmulatorOptions("lsf", flavour="volclava", scheduling=False)) as emulator:
        site.write_text(
            "plugins: [elastic, easy, first-fit]\njournal: j.db\nmode: drive\ncluster:\n  adapter: lsf\n"
            f"  options: {{queues: [normal], bin_dir: {emulator.bin}}}\n"
        )
        ran = headway("check", "-c", site)
        assert ran.code == 1
        said = " ".join(ran.out.split())
        assert "FAIL plugins" in said and "plugin 'elastic' needs SetTimeLimit" in said
        site.write_text(site.read_text().replace("elastic, ", ""))
        assert headway("check", "-c", site).code == 0


@pytest.mark.parametrize(("system", "queue"), [("pbs", "workq"), ("lsf", "normal")])
def test_a_cluster_that_keeps_processors_for_suspended_jobs_suspends_none(
    headway: Headway, tmp_path: Path, system: str, queue: str
) -> None:
    site = tmp_path / "site.yaml"
    with Emulator(tmp_path / system, EmulatorOptions(system, scheduling=False)) as emulator:
        site.write_text(
            "plugins: [preemption: {rules: [{who: {qos: [a]}, whom: {qos: [b]}, how: suspend}]}, easy]\n"
            f"journal: j.db\nmode: drive\ncluster:\n  adapter: {system}\n"
            f"  options: {{queues: [{queue}], bin_dir: {emulator.bin}}}\n"
        )
        ran = headway("check", "-c", site)
        assert ran.code == 1
        keeps = "plugin 'preemption' suspends jobs to make room, and this cluster keeps their processors"
        assert keeps in " ".join(ran.out.split())
        ran = headway("run", "-c", site)
        assert ran.code == 2
        assert "rules.0: how: suspend: expected a cluster where" in " ".join((ran.out + ran.err).split())
        site.write_text(site.read_text().replace("suspend", "requeue"))
        assert keeps not in " ".join(headway("check", "-c", site).out.split())


@pytest.mark.parametrize(("system", "how", "told"), [
    ("pbs", "suspend", True), ("lsf", "suspend", True), ("pbs", "requeue", False),
    ("slurm", "suspend", False), ("emulated", "suspend", False),
])  # fmt: skip
def test_a_dry_run_says_what_that_cluster_would_refuse(
    headway: Headway, tmp_path: Path, system: str, how: str, told: bool
) -> None:
    site, trace = tmp_path / "site.yaml", tmp_path / "one.swf"
    trace.write_text("; MaxProcs: 4\n1 0 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 -1 -1 -1\n")
    site.write_text(
        f"plugins: [preemption: {{rules: [{{who: {{qos: [a]}}, whom: {{qos: [b]}}, how: {how}}}]}}, easy]\n"
        f"cluster: {{adapter: {system}}}\n"
    )
    ran = headway("dry-run", "-c", site, "--trace", trace)
    assert ran.code == 0
    said = " ".join((ran.out + ran.err).split())
    keeps = (
        f"site.yaml: cluster: adapter: {system}: plugin 'preemption' suspends jobs to make room, and this "
        "cluster keeps the processors of a suspended job"
    )
    assert (keeps in said) == told


@pytest.mark.parametrize("made", [False, True])
def test_a_full_disk_under_the_journal_is_found(
    headway: Headway, config: Path, tmp_path: Path, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if made:
        Journal.open(tmp_path / "j.db").close()
    monkeypatch.setattr(check.shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000_000))
    ran = headway("check", "-c", config)
    assert ran.code == 1 and lines(ran.out)["journal"] == "FAIL"
    assert "3 MB are free" in " ".join(ran.out.split()) and "make room" in ran.out


def test_all_mistakes_of_a_configuration_are_told_at_once(headway: Headway, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "cluster: {adapter: slurm, options: {partitons: [a]}}\n"
        "plugins: [easyy, {limits: {limit: 3}}, {multifactor: {weihgts: {}}}]\n"
    )
    ran = headway("check", "-c", path)
    assert ran.code == 2
    for told in ("partitons: unknown key", "'easyy'", "limits: limit: unknown key", "weihgts: unknown key"):
        assert ran.err.count(told) == 1
