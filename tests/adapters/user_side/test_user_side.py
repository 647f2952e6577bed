"""A user's side of each batch system: the commands, what a job was given, the queue as users see it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from adapters.slurm.pretended_slurm import PretendedSlurm, result

from headway.adapter.user_side import Allocation, Submission, load_user_side
from headway.errors import Failure, UserError
from headway.model import JobDescription, NodeDescription, PoolDescription, Request, Reservation
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.slurm import reader
from headway_adapters.user_side import lsf, pbs, slurm
from headway_adapters.user_side.listing import queue_of

ARGV = ("/opt/headway/bin/headway", "bundle", "worker", "/home/alice/it's here; rm -rf ~")


def submission(**changes: Any) -> Submission:
    values: dict[str, Any] = {
        "name": "b01234567.1", "processors": 25, "walltime": 13640.0, "argv": ARGV, "output": "/home/a/o%j",
    }  # fmt: skip
    return Submission(**{**values, **changes})


def test_slurm_gets_words_and_whole_minutes() -> None:
    words = slurm.submission(submission(account="physics"), "batch")
    assert words[0] == "sbatch" and words[-4:] == ARGV
    assert {"--partition=batch", "--ntasks=25", "--time=228", "--job-name=b01234567.1"} <= set(words)
    # A percent sign would be Slurm's.
    assert "--output=/home/a/o%%j" in words and "--account=physics" in words


def test_memory_is_asked_for_with_each_processor() -> None:
    assert "--mem-per-cpu=1001M" in slurm.submission(submission(memory=1000 * 2**20 + 1), "batch")
    assert "select=25:ncpus=1:mem=1001kb" in pbs.submission(submission(memory=1000 * 2**10 + 1), "workq")
    with pytest.raises(Failure, match="LSF counts it for a host or for a job"):
        lsf.submission(submission(memory=1), "normal")


def test_pbs_gets_words_and_seconds() -> None:
    words = pbs.submission(submission(), "workq")
    assert words[0] == "qsub" and words[words.index("--") + 1 :] == ARGV
    assert "select=25:ncpus=1" in words and "walltime=03:47:20" in words


def test_lsf_hands_its_last_word_to_a_shell_so_it_is_quoted() -> None:
    words = lsf.submission(submission(), "normal")
    assert words[0] == "bsub" and tuple(shlex.split(words[-1])) == ARGV
    assert words[words.index("-W") + 1] == "228"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "-x"}, "'-x' is not the name of a job"),
        ({"name": "a b"}, "is not the name of a job"),
        ({"account": "--uid=0"}, "is not the name of an account"),
        ({"processors": 0}, "0 processors"),
        ({"output": "relative"}, "absolute paths"),
        ({"argv": ("headway",)}, "absolute paths"),
        ({"argv": ("/bin/headway", "two\nlines")}, "cannot stand in a command"),
        ({"walltime": float("inf")}, "is not a time limit"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("system", [slurm, pbs, lsf])
def test_what_cannot_be_a_word_is_refused(system: Any, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Failure, match=why):
        system.submission(submission(**changes), "batch")


def test_a_placeholder_is_made_small() -> None:
    assert slurm.shrinking("17", 60.0)[2:] == (
        "JobId=17",
        "NumTasks=1",
        "NumCPUs=1",
        "NumNodes=1-1",
        "TimeLimit=1",
        "StartTime=now",
    )
    assert pbs.shrinking("17.server", 60.0) == (
        "qalter", "-l", "select=1:ncpus=1", "-l", "walltime=00:01:00", "17.server",
    )  # fmt: skip
    assert lsf.shrinking("17", 60.0) == ("bmod", "-n", "1", "-W", "1", "17")


def test_a_job_on_slurm_knows_what_it_was_given() -> None:
    environment = {
        "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_CPUS_PER_NODE": "4(x2),1",
        "SLURMD_NODENAME": "node2",
    }  # fmt: skip
    expected = Allocation("17", (("node1", 4), ("node2", 4), ("node3", 1)), "node2")
    assert slurm.allocation(environment) == expected
    assert slurm.allocation({}) is None
    with pytest.raises(Failure, match="expected numbers such as"):
        slurm.allocation({**environment, "SLURM_JOB_CPUS_PER_NODE": "many"})
    with pytest.raises(Failure, match="each of 3 nodes, found 1"):
        slurm.allocation({**environment, "SLURM_JOB_CPUS_PER_NODE": "4"})


def test_a_job_on_pbs_and_lsf_knows_it_too(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("a.site\na.site\nb.site\n")
    environment = {"PBS_JOBID": "17.server", "PBS_NODEFILE": str(file)}
    assert pbs.allocation(environment, "b") == Allocation(
        "17.server", (("a.site", 2), ("b.site", 1)), "b.site"
    )
    with pytest.raises(Failure, match="PBS_NODEFILE"):
        pbs.allocation({**environment, "PBS_NODEFILE": str(tmp_path / "none")}, "b")
    said = {"LSB_JOBID": "17", "LSB_MCPU_HOSTS": "a 2 b 1"}
    assert lsf.allocation(said, "b.site") == Allocation("17", (("a", 2), ("b", 1)), "b")
    with pytest.raises(Failure, match="LSB_MCPU_HOSTS"):
        lsf.allocation({**said, "LSB_MCPU_HOSTS": "a two"}, "a")


def job(key: str, processors: int, state: str = "pending", **more: Any) -> SnapshotJob:
    own = ("priority", "begin_time", "pool", "further_pools")
    described = {key: more.pop(key) for key in own if key in more}
    description = JobDescription(
        key, float(key), Request(processors, 100.0), user="alice", **{"pool": "batch", **described}
    )
    return SnapshotJob(description, state, **more)


def test_a_running_placeholder_is_put_back_where_its_owner_can_do_that() -> None:
    slurms = load_user_side("slurm", {"queue": "batch"})
    assert slurms.postponing("17") == (
        ("scontrol", "update", "JobId=17", "Requeue=1"), ("scontrol", "requeuehold", "17")
    )  # fmt: skip
    assert slurms.releasing("17") == ("scontrol", "release", "17")
    lsfs = load_user_side("lsf", {})
    assert (lsfs.postponing("17"), lsfs.releasing("17")) == ((("brequeue", "-H", "17"),), ("bresume", "17"))
    with pytest.raises(Failure, match="only operators"):
        load_user_side("pbs", {}).postpone("17.server")


def test_workers_are_started_on_a_jobs_other_nodes(tmp_path: Path) -> None:
    argv = ("/opt/headway/bin/headway", "bundle", "worker", "--here", "/b")
    mine = Allocation("7", (("n1", 2), ("n2", 1), ("n3", 4)), "n2")
    assert mine.others == ("n1", "n3")
    side = load_user_side("slurm", {"queue": "batch"})
    (words,) = side.elsewhere(argv, mine, {})
    assert words[0] == "srun" and words[-5:] == argv
    assert {"--nodelist=n1,n3", "--nodes=2", "--ntasks=2", "--overcommit"} <= set(words)
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn3\nn3\n")
    commands = tmp_path / "bin"
    commands.mkdir()
    given = {"PBS_NODEFILE": str(nodes), "PATH": "/nowhere", "PBS_O_PATH": str(commands)}
    with pytest.raises(Failure, match="expected pbsdsh in PATH or PBS_O_PATH"):
        pbs.elsewhere(argv, mine, given)
    for name in ("pbsdsh", "lsrun", "blaunch"):
        (commands / name).write_text("#!/bin/sh\n")
        (commands / name).chmod(0o755)
    program = str(commands / "pbsdsh")
    # It counts lines, a host may have several.
    assert pbs.elsewhere(argv, mine, given) == (
        (program, "-n", "0", "--", *argv), (program, "-n", "3", "--", *argv)
    )  # fmt: skip
    path = {"PATH": str(commands)}
    assert lsf.elsewhere(argv, mine, path) == ((str(commands / "blaunch"), "-z", "n1 n3", *argv),)
    (commands / "blaunch").unlink()
    assert lsf.elsewhere(argv, mine, path) == tuple(
        (str(commands / "lsrun"), "-m", host, "--", *argv) for host in ("n1", "n3")
    )
    with pytest.raises(Failure, match="expected blaunch or lsrun"):
        lsf.elsewhere(argv, mine, {"PATH": "/nowhere"})


def test_the_queue_as_users_see_it() -> None:
    nodes = [
        NodeDescription("n1", 4, pools=("batch",)),
        NodeDescription("n2", 4, pools=("batch", "other")),
        NodeDescription("down", 4, pools=("batch",), available=False),
        NodeDescription("kept", 4, pools=("batch",)),
        NodeDescription("later", 4, pools=("batch",)),
        NodeDescription("foreign", 4, pools=("other",)),
    ]
    jobs = [
        job("1", 3, "running", placement=(("n1", 3),), start_time=950.0),
        job("2", 2, "suspended", placement=(("n2", 1), ("foreign", 1)), start_time=990.0, pool="other"),
        job("3", 8, priority=5.0),
        job("4", 8, priority=9.0),
        job("5", 8, priority=99.0, held_by="user"),
        job("6", 8, priority=99.0, begin_time=2000.0),
        job("7", 8, priority=99.0, pool="other"),
        job("9", 8, priority=7.0, pool="other", further_pools=("batch",)),
        job("8", 1, "ended", exit_code=3),
    ]
    reservations = [
        Reservation("now", 900.0, 1100.0, nodes=("kept",)),
        Reservation("soon", 1200.0, 1300.0, nodes=("later",)),
    ]
    snapshot = Snapshot(
        1000.0, {one.job.id: one for one in jobs}, {node.name: node for node in nodes},
        {"batch": PoolDescription("batch")}, {one.id: one for one in reservations},
    )  # fmt: skip
    queue = queue_of(snapshot, "batch")
    assert queue.free == 1 + 3 + 4
    assert [one.id for one in queue.waiting] == ["4", "9", "3"]
    assert queue.ends == ((1050.0, 3), (1090.0, 1))
    assert queue.jobs["8"].exit_code == 3 and queue.jobs["8"].end is None


def test_slurm_is_listed_asked_and_told_with_no_more_than_a_users_commands() -> None:
    pretended = PretendedSlurm()
    one = slurm.SlurmUser({"queue": "batch"}, transport=pretended)
    queue = one.look()
    assert queue.jobs and queue.free >= 0
    # Every user may be shown the QOS.
    asked = [words for words in pretended.said if words != reader.LIFTED]
    assert all(words[0] in ("squeue", "sinfo", "scontrol", "sacct") for words in asked)
    assert not any("update" in words for words in pretended.said)
    pretended.answer = lambda argv: result(argv, "4711;cluster\n") if argv[0] == "sbatch" else None
    assert one.submit(submission()) == "4711"
    pretended.answer = lambda argv: result(argv, "", 1, "scancel: error: Invalid job id 4711")
    one.cancel("4711")
    pretended.answer = lambda argv: result(argv, "", 1, "Batch job submission failed: Requested node count")
    with pytest.raises(Failure, match="sbatch: Batch job submission failed"):
        one.submit(submission())
    with pytest.raises(Failure, match="scancel: Batch job"):
        one.cancel("4711")
    with pytest.raises(Failure, match="is not the id of a Slurm job"):
        one.cancel("4711; rm")


def test_the_default_partition_is_found_or_asked_for() -> None:
    text = "PartitionName=a Default=NO Nodes=n1\nPartitionName=b Default=YES Nodes=n1\n"
    assert slurm.default_partition(text) == "b"
    with pytest.raises(UserError, match=r"--queue: Slurm has no default partition; expected .*: a, b"):
        slurm.default_partition(text.replace("YES", "NO"))


def test_an_unknown_batch_system_and_a_wrong_queue() -> None:
    with pytest.raises(UserError, match=r"no batch system is called 'slrum'. Did you mean 'slurm'"):
        load_user_side("slrum", {})
    with pytest.raises(UserError, match="--queue: expected the name of a queue, found '-q'"):
        load_user_side("pbs", {"queue": "-q"})
    with pytest.raises(UserError, match="colour"):
        load_user_side("lsf", {"queue": "q", "colour": "red"})


def test_a_job_on_slurm_reads_and_writes_notes_and_keeps_its_own_words(mocker: Any) -> None:
    user = slurm.SlurmUser({"queue": "batch"})
    run = mocker.patch.object(user._client, "run")
    run.return_value = result(("squeue",), "scopred:app=x;N=1 headway-protect:integrity=SHA-512\n")
    inside = {"SLURM_JOB_ID": "12"}
    assert user.notes(inside) == {"protect": "integrity=SHA-512"}
    assert run.call_args.args[0] == ("squeue", "--noheader", "--jobs=12", "--format=%k")
    user.note(inside, "took", "SHA-512:1:0.5")
    assert run.call_args.args[0] == (
        "scontrol", "update", "JobId=12",
        "Comment=scopred:app=x;N=1 headway-protect:integrity=SHA-512 headway-took:SHA-512:1:0.5",
    )  # fmt: skip
    run.return_value = result(("squeue",), "(null)\n")
    assert user.notes(inside) == {} and user.notes({}) == {}
    with pytest.raises(Failure, match="is not the id of a Slurm job"):
        user.note({}, "took", "x")
