"""``qstat -a`` of the emulated PBS is what OpenPBS 23.06 writes."""

from __future__ import annotations

from headway_adapters.commands.pbs_alternate import listing

#: As a real server wrote it; blanks at the ends of lines are kept.
RECORDED = "\n".join(
    (
        "",
        "pbsa: ",
        "                                                            Req'd  Req'd   Elap",
        "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time",
        "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----",
        "89.pbsa         alice    workq    averylong*  12285   2   4    2gb 100:0 R 00:00",
        "90[].pbsa       alice    workq    STDIN         --    1   1    --    --  Q   -- ",
        "91.pbsa         alice    hwtest   STDIN         --    1   1    --    --  H   -- ",
        "",
    )
)


def test_the_columns_are_those_of_a_real_server() -> None:
    def job(name: str, queue: str, state: str, **more: object) -> dict[str, object]:
        one = {"nodect": 1, "ncpus": 1}
        return {
            "Job_Name": name, "Job_Owner": "alice@pbsa", "queue": queue, "job_state": state,
            "Resource_List": one, **more,
        }  # fmt: skip

    runs = {
        "session_id": 12285,
        "resources_used": {"walltime": "00:00:02"},
        "Resource_List": {"nodect": 2, "ncpus": 4, "mem": "2gb", "walltime": "100:00:00"},
    }
    records = {
        "89.pbsa": job("averylongjobnamehere", "workq", "R", **runs),
        "90[].pbsa": job("STDIN", "workq", "Q"),
        "91.pbsa": job("STDIN", "hwtest", "H"),
    }
    assert listing("pbsa", records) == RECORDED


def test_of_no_jobs_nothing_is_written() -> None:
    assert listing("pbsa", {}) == ""
