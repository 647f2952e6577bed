"""``headway fit`` and ``headway predict`` on files."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from headway import __version__
from headway.errors import UserError
from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.inputs import SAVED_AS
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, PoolDescription, Request
from headway.model.modes import Mode
from headway_plugins.prediction.commands import fit, predict, sizes
from headway_plugins.reproductions.scopred_tables import EP, EP_N


@pytest.fixture
def runs(tmp_path):
    """The paper's runs of EP, class A, on 2 to 10 nodes."""
    path = tmp_path / "runs.csv"
    lines = [f"{EP_N['A']:.0f},{p},{EP['A'][p]}" for p in (2, 4, 6, 8, 10)]
    path.write_text("\n".join(["N,P,runtime", *lines]) + "\n")
    return path


def called(command, *arguments):
    found = CliRunner().invoke(command, [str(a) for a in arguments], env={"COLUMNS": "200"})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def test_fit_shows_the_coefficients_and_how_good_they_are(runs):
    told = called(fit, "ep", "--formula", "N/P", "--runs", runs)
    assert "ep: 5 runs." in told
    assert re.search(r"N/P +2\.50\d+e-07", told)
    assert "the terms explain the runs" in told


def test_predict_shows_intervals_and_a_limit_for_each_size(runs):
    told = called(
        predict, "ep", "--formula", "N/P", "--runs", runs,
        "--set", f"N={EP_N['A']:.0f}", "--nodes", "12,14,16", "--granularity", "5",
    )  # fmt: skip
    rows = [line.split() for line in told.splitlines()[1:]]
    assert [(row[1], row[2]) for row in rows] == [("12", "5.626"), ("14", "4.827"), ("16", "4.228")]
    assert rows[0][5:8] == ["10", "regression,", "5"]


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("N/(P-P)", "the term N/(P - P) has no value at N=268435456, P=2"),
        ("exp(N)", "the term exp(N) has no value at N=268435456"),
        ("N/P + log(2-P)", "the term log(2 - P) has no value at N=268435456, P=2"),
    ],
)
def test_a_formula_without_a_value_at_the_recorded_runs_is_named_with_the_first_of_them(runs, formula, why):
    why += " (a division by zero, or out of range)"
    with pytest.raises(UserError) as error:
        called(fit, "ep", "--formula", formula, "--runs", runs)
    assert str(error.value) == f"ep: expected runs at which the formula has a value, found none: {why}"
    point = ("--set", "N=4", *(("--set", "P=3") if "P" in formula else ()))
    assert why in " ".join(called(predict, "ep", "--formula", formula, "--runs", runs, *point).split())


def test_runs_at_which_a_formula_has_no_value_are_said_not_to_count_for_that(runs):
    told = called(fit, "ep", "--formula", "N/(P-4)", "--runs", runs)
    assert "ep: 4 runs; 1 do not count, of them 1 because the term N/(P - 4) has no value at" in told


def test_what_must_not_be_used_gets_no_limit_and_says_why(runs):
    told = called(predict, "ep", "--formula", "N/P + N*P", "--runs", runs, "--set", "N=5", "--set", "P=0")
    assert "has no value there" in told
    one = runs.with_name("one.csv")
    one.write_text("N,P,runtime\n4,8,100\n")
    told = called(predict, "a", "--formula", "N/P", "--runs", one, "--set", "N=4", "--nodes", 8)
    assert "1 run is too few for 1 coefficient" in told
    assert told.splitlines()[1].split()[:4] == ["4", "8", "100", "regression,"]


def test_runs_of_others_of_other_pools_and_that_failed(tmp_path):
    path = tmp_path / "runs.csv"
    lines = ["application,pool,state,end,N,runtime"]
    lines += [f"ft,old,COMPLETED,{n},{n},{2 * n}" for n in range(1, 6)]
    lines += [f"ft,new,completed,{n},{n},{n + 0.01 * (n % 2)}" for n in range(1, 6)]
    lines += ["ft,new,TIMEOUT,9,9,900", "lu,new,COMPLETED,9,9,901"]
    path.write_text("\n".join(lines))
    told = called(fit, "ft", "--formula", "N", "--runs", path, "--pool", "new")
    assert "ft: 5 runs; 1 do not count." in told
    with pytest.raises(UserError, match="expected --pool with one of 'new', 'old'"):
        called(fit, "ft", "--formula", "N", "--runs", path)
    with pytest.raises(UserError, match=r"--pool nw: expected a pool .* Did you mean 'new'"):
        called(fit, "ft", "--formula", "N", "--runs", path, "--pool", "nw")
    with pytest.raises(UserError, match="expected runs of 'cg', found none"):
        called(fit, "cg", "--formula", "N", "--runs", path)


def test_sizes_are_doubled_up_to_the_last():
    assert sizes("8..64") == [8, 16, 32, 64]
    assert sizes("3, 8..20") == [3, 8, 16, 20]
    for wrong in ("", "8..", "a", "0", "8...64", "-4", "8..1e3"):
        with pytest.raises(UserError, match="--nodes"):
            sizes(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("N,runtime\n1,2\n", "expected one column 'P', found N, runtime"),
        ("N,P,runtime\n1,2\n", "line 2: expected 3 fields"),
        ("N,P,runtime\n1,2,3\n1,x,3\n", "line 3: P: expected a number, found 'x'"),
        ("N,P,runtime\n1,2,-3\n", "line 2: runtime: expected seconds from 0 on"),
        ("N,P,runtime\n1,2,1e999\n", "line 2: runtime: expected a number"),
        ("N,P,runtime\n", "expected runs of 'ep', found none"),
        ("", "expected one column 'N', found none"),
    ],
)
def test_a_list_of_runs_that_is_wrong_names_the_line(tmp_path, text, message):
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(message)):
        called(fit, "ep", "--formula", "N/P", "--runs", path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "N=1"), "expected --set P=VALUE"),
        (("--set", "N=1", "--set", "M=2"), "--set M: unknown parameter"),
        (("--set", "N"), "expected NAME=VALUE"),
        (("--set", "N=many"), "expected a number for N, found 'many'"),
    ],
)
def test_settings_that_are_wrong(runs, arguments, message):
    with pytest.raises(UserError, match=message):
        called(predict, "ep", "--formula", "N/P", "--runs", runs, *arguments)


def test_a_file_of_applications(runs, tmp_path):
    path = tmp_path / "applications.yaml"
    path.write_text("applications:\n  ep: {formula: N/P, sizes: {P: nodes}}\n  hpl: {formula: N^3}\n")
    told = called(predict, "ep", "--applications", path, "--runs", runs, "--set", "N=2e8", "--nodes", "12")
    assert "regression, 5 runs" in told
    with pytest.raises(UserError, match="no application is called 'pe'"):
        called(fit, "pe", "--applications", path, "--runs", runs)
    with pytest.raises(UserError, match="either --applications FILE or --formula, found neither"):
        called(fit, "ep", "--runs", runs)
    with pytest.raises(UserError, match="--nodes: expected an application with a parameter"):
        called(predict, "hpl", "--applications", path, "--runs", runs, "--set", "N=1", "--nodes", "4")


def recorded(tmp_path, pools=("main",)):
    """A configuration, and a journal with runs of ft in pools."""
    (tmp_path / "apps.yaml").write_text("applications: {ft: {formula: N}, lu: {formula: N}}\n")
    config = tmp_path / "site.yaml"
    plugins = "[easy, {scopred: {applications: apps.yaml}}]"
    config.write_text(f"mode: dry-run\nplugins: {plugins}\njournal: {tmp_path / 'runs.db'}\n")
    cluster = ClusterDescription("c", tuple(PoolDescription(pool, 8) for pool in pools))
    apps = {str(tmp_path / "apps.yaml"): (tmp_path / "apps.yaml").read_text()}
    with Journal.open(tmp_path / "runs.db") as journal:
        states = {SAVED_AS: {**apps, "apps.yaml": (tmp_path / "apps.yaml").read_text()}}
        text = config.read_text()
        journal.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, text, 0, cluster, states))
        seq = 0
        for pool in pools:
            for n in range(1, 8):
                at, name = 1000.0 * n, f"{pool}{n}"
                comment = {"comment": f"scopred:app=ft;N={n}"}
                job = JobDescription(name, at, Request(1, 900.0), pool=pool, attributes=comment)
                for time, event in (
                    (at, JobSubmitted(at, job)),
                    (at, JobStarted(at, name, ())),
                    (at + 10 + 3 * n, JobEnded(at + 10 + 3 * n, name, "completed", "")),
                ):
                    seq += 1
                    journal.record_events(seq, time, [event])
        journal.end_run("finished")
    return config


def test_what_the_daemon_recorded_is_fitted_and_predicted(tmp_path):
    config = recorded(tmp_path)
    told = called(fit, "ft", "-c", config)
    assert "Of 7 jobs that completed 57 % were predicted" in told
    assert "ft: 7 runs." in told and re.search(r"N +3\b", told)
    told = called(predict, "ft", "-c", config, "--set", "N=20", "--granularity", 1)
    assert told.splitlines()[-1].split()[:2] == ["20", "70"]
    for arguments, message in (
        (("lu", "-c", config), "expected recorded runs of 'lu', found none"),
        (("tf", "-c", config), "no application is called 'tf'"),
        (("ft", "-c", config, "--formula", "N"), "either --config, or --runs"),
        (("ft", "-c", config, "--pool", "mian"), "Did you mean 'main'"),
        (("ft", "--formula", "N"), "expected --runs FILE or --config FILE"),
    ):
        with pytest.raises(UserError, match=message):
            called(fit, *arguments)


def test_recorded_pools_do_not_mix_and_without_the_plugin_nothing_is_recorded(tmp_path):
    config = recorded(tmp_path, ("old", "new"))
    with pytest.raises(UserError, match="expected --pool with one of 'new', 'old'"):
        called(fit, "ft", "-c", config)
    assert "ft: 7 runs." in called(fit, "ft", "-c", config, "--pool", "new")
    config.write_text("plugins: [easy]\nmode: dry-run\n")
    with pytest.raises(UserError, match="expected scopred to be enabled"):
        called(fit, "ft", "-c", config)


def listed(tmp_path, *rows):
    path = tmp_path / "listed.csv"
    path.write_text("\n".join(["N,runtime", *rows, ""]))
    return path


def test_a_history_of_one_run_says_that_it_is_too_little(tmp_path):
    one = listed(tmp_path, "2,10")
    told = called(fit, "ep", "--formula", "N", "--runs", one)
    assert "ep: 1 run.\n" in told
    assert "Too few runs to say how good that is: 1 for a rank of 1." in told and "nan" not in told
    told = called(predict, "ep", "--formula", "N", "--runs", one, "--set", "N=4")
    assert "regression, 1 run" in told and "1 run is too few for 1 coefficient" in told


def test_a_column_that_is_constant_predicts_nothing_else(tmp_path):
    same = listed(tmp_path, "4,10", "4,11", "4,12")
    assert "Rank 1 of 2: these runs do not tell all terms apart" in called(
        fit, "ep", "--formula", "N", "--runs", same
    )
    told = " ".join(called(predict, "ep", "--formula", "N", "--runs", same, "--set", "N=9").split())
    assert "not estimable from these runs" in told


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("1/0", "formula '1/0', column 1: expected a term that names a parameter, found none"),
        ("9**9**9**9", "column 1: expected a term that names a parameter, found none"),
        ('__import__("os").system("id")', "column 1: expected one of the functions log, log2"),
        ("N.real", "column 1: "),
        ("exec(N)", "column 1: expected one of the functions log, log2"),
    ],
)
def test_formulas_that_are_none_are_refused_with_their_place(tmp_path, formula, message):
    with pytest.raises(UserError, match=re.escape(message)):
        called(fit, "ep", "--formula", formula, "--runs", listed(tmp_path, "0,10", "1,12", "2,15"))


@pytest.mark.parametrize(("formula", "at"), [("1/N", 0), ("log(N)", 0), ("exp(N)", 1000), ("N**400", 99)])
def test_runs_at_which_a_formula_has_no_value_do_not_count(tmp_path, formula, at):
    runs = listed(tmp_path, f"{at},10", "1,14", "2,15", "3,17")
    told = called(fit, "ep", "--formula", formula, "--runs", runs)
    assert "ep: 3 runs; 1 do not count, of them 1 because the term" in told
    told = " ".join(called(predict, "ep", "--formula", formula, "--runs", runs, "--set", f"N={at}").split())
    assert "has no value there" in told


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,-5", "line 3: runtime: expected seconds from 0 on, found '-5'"),
        ("2,1e400", "line 3: runtime: expected a number, found '1e400'"),
        ("2,1.234.567", "line 3: runtime: expected a number, found '1.234.567'"),
    ],
)
def test_absurd_times_name_their_line(tmp_path, row, message):
    with pytest.raises(UserError, match=re.escape(message)):
        called(fit, "ep", "--formula", "N", "--runs", listed(tmp_path, "1,10", row))


def test_another_encoding_names_its_line(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes("N,runtime,user\n1,10,ann\n2,20,jos\xe9\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"runs\.csv, line 3: expected UTF-8, found the byte 0xe9"):
        called(fit, "ep", "--formula", "N", "--runs", path)
