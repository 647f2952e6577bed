"""PBS's listings: qstat of jobs, arrays, queues and the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headway_adapters.commands import pbs_alternate, pbs_dsv
from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.machine import Job
from headway_adapters.commands.pbs_request import FINISHED, UNKNOWN_QUEUE, ranges, vnode_of
from headway_adapters.commands.pbs_server import BEFORE, VERSION, Array, PbsServer, Queue
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.system import Refused, options


class PbsListing(PbsServer):
    """qstat."""

    # ------------------------------------------------------------------ listings of jobs

    def _qstat(self, call: Call) -> Reply:
        if call.words == ("--version",):
            return Reply(0, f"pbs_version = {VERSION}\n")
        given, rest = options(call, "aBQD:fF:txw")
        flags = {letter for letter, _ in given}
        form = dict(given).get("-F", "")
        between = dict(given).get("-D", "|") if form == "dsv" else ""
        if form not in ("", "json", "dsv"):
            raise Refused(2, f"qstat: invalid -F value {form}")
        if "-B" in flags:
            return self._show(form, "Server", {self.server: self._server_record()}, "Server: ", flags)
        if "-Q" in flags:
            unknown = [name for name in rest if name not in self.queues]
            if unknown:
                raise Refused(UNKNOWN_QUEUE, f"qstat: Unknown queue {unknown[0]}")
            records = {name: self._queue_record(queue) for name, queue in self.queues.items()}
            kept = {name: record for name, record in records.items() if not rest or name in rest}
            return self._show(form, "Queue", kept, "Queue: ", flags)
        records, errors, rc = {}, [], 0
        if rest:
            for word in rest:
                try:
                    records.update(self._records_of(word, flags))
                except Refused as refused:
                    errors.append(refused.message + "\n")
                    rc = refused.rc
        else:
            records = self._all_records(flags)
        if "-f" in flags:
            if form == "dsv":
                return Reply(rc, pbs_dsv.listing(records, between), "".join(errors))
            reply = self._show(form, "Jobs", records, "Job Id: ", flags)
            return Reply(rc, reply.out, "".join(errors))
        if "-a" in flags:
            return Reply(rc, pbs_alternate.listing(self.server, records), "".join(errors))
        rows = [
            (
                job_id,
                record["Job_Name"],
                record["Job_Owner"].partition("@")[0],
                record.get("resources_used", {}).get("cput", "0") if record["job_state"] != "Q" else "0",
                record["job_state"],
                record["queue"],
            )
            for job_id, record in records.items()
        ]
        return Reply(rc, text.table(rows), "".join(errors))

    def _show(
        self, form: str, key: str, records: Mapping[str, Any], title: str, flags: Iterable[str]
    ) -> Reply:
        if form == "dsv":
            raise Refused(2, "qstat: only jobs are emulated in the form dsv")
        if form == "json":
            head = {
                "timestamp": int(self.machine.wall()),
                "pbs_version": VERSION,
                "pbs_server": self.server,
            }
            return Reply(0, as_json({**head, key: records} if records else head) + "\n")
        if key != "Jobs" and "-f" not in flags:
            raise Refused(2, "qstat: only the full listing (-f) of queues and servers is emulated")
        return Reply(
            0, "".join(f"{title}{name}\n{text.attributes(record)}\n" for name, record in records.items())
        )

    def _all_records(self, flags: Iterable[str]) -> dict[str, Any]:
        records: dict[str, Any] = {}
        seen: set[str] = set()
        history = "-x" in flags
        for job in self.machine.jobs.values():
            array = self._array(job)
            if array is None:
                if history or job.state != "ended":
                    records[job.id] = self._record(job)
            elif array.id not in seen:
                seen.add(array.id)
                if history or array.alive:
                    records.update(self._array_records(array, flags))
        return records

    def _array_records(self, array: Array, flags: Iterable[str]) -> dict[str, Any]:
        records = {array.id: self._array_record(array)}
        if "-t" in flags:
            records.update({job.id: self._record(job) for job in array.elements})
        return records

    def _records_of(self, word: str, flags: set[str]) -> dict[str, Any]:
        if not word[:1].isdigit():
            raise Refused(UNKNOWN_QUEUE, f"qstat: Unknown queue destination {word}")
        jobs = self._jobs(word, "qstat")
        array = self._array(jobs[0])
        finished = not array.alive if array else jobs[0].state == "ended"
        if finished and "-x" not in flags:
            raise Refused(
                FINISHED,
                f"qstat: {word} Job has finished, use -x or -H to obtain historical job information",
            )
        if array is not None and "[]" in word:
            return self._array_records(array, flags)
        return {job.id: self._record(job) for job in jobs}

    def _letter(self, job: Job) -> tuple[str, int]:
        """State and substate."""
        if job.state == "ended":
            array = self._array(job)
            return ("X" if array and array.alive else "F"), job.words["substate"]
        if job.state == "queued":
            if job.holds:
                return "H", 20
            if self.machine.dependency(job) is not True:
                return "H", 22
            if job.begin is not None and job.begin > self.machine.wall():
                return "W", 30
            return "Q", 10
        if job.state == "suspended":
            return "S", 45 if job.resuming else 43
        return "R", 41 if job.state == "starting" else 42

    def _record(self, job: Job) -> dict[str, Any]:
        array = self._array(job)
        if array is not None and job.state == "queued" and not job.executions:
            # An element that never ran shows what the array has.
            record = self._array_record(array)
            for key in ("array", "array_state_count", "array_indices_submitted", "array_indices_remaining",
                        "project", "Submit_Host"):  # fmt: skip
                record.pop(key)
            record["job_state"], record["substate"] = self._letter(job)
            record["Hold_Types"] = "".join(sorted(job.holds)) or "n"
            return record
        record = self._full_record(job, array)
        if record["job_state"] == "X":
            for key in ("resources_used", "exec_host", "exec_vnode", "Hold_Types", "comment"):
                record.pop(key, None)
        return record

    def _array_record(self, array: Array) -> dict[str, Any]:
        first = array.elements[0]
        alive = array.alive
        begun = any(job.executions or job.state == "starting" for job in array.elements)
        record = self._full_record(first, None)
        for key in ("resources_used", "exec_host", "exec_vnode", "session_id", "jobdir", "hashname",
                    "run_count", "run_version", "obittime", "comment"):  # fmt: skip
            record.pop(key, None)
        held = alive[0].holds if alive else set()
        if alive:
            record.pop("history_timestamp", None)
        state, substate = ("F", 92) if not alive else ("B", 70) if begun else self._letter(alive[0])
        counts = {
            "Queued": sum(job.state == "queued" for job in alive),
            "Running": sum(job.state in ("running", "starting", "suspended") for job in alive),
            "Exiting": 0,
            "Expired": len(array.elements) - len(alive),
        }
        changes = {
            "job_state": state, "substate": substate, "Hold_Types": "".join(sorted(held)) or "n",
            "Error_Path": self._path(first, "e", "^array_index^"),
            "Output_Path": self._path(first, "o", "^array_index^"),
        }  # fmt: skip
        record = {key: changes.get(key, value) for key, value in record.items()}
        project, host = record.pop("project"), record.pop("Submit_Host")
        record |= {
            "array": "True",
            "array_state_count": " ".join(f"{key}:{count}" for key, count in counts.items()),
            "array_indices_submitted": array.indices,
            "array_indices_remaining": ranges([job.index or 0 for job in alive if job.state == "queued"]),
            "project": project,
            "Submit_Host": host,
        }
        return record

    def _path(self, job: Job, letter: str, index: str) -> str:
        key = "Error_Path" if letter == "e" else "Output_Path"
        ready = job.words.get(key)
        if ready is not None:
            return str(ready)
        return f"{self.server}:{job.words['cwd']}/{job.name}.{letter}{job.number}" + (
            f".{index}" if index else ""
        )

    def _full_record(self, job: Job, array: Array | None) -> dict[str, Any]:
        words = job.words
        state, substate = self._letter(job)
        ran = job.executions > 0
        index = str(job.index) if job.index is not None else ""
        at = self._clock
        record: dict[str, Any] = {"Job_Name": job.name, "Job_Owner": f"{job.user}@{self.server}"}
        if ran and state not in ("Q", "H"):
            record["resources_used"] = self._used(job)
        record |= {"job_state": state, "queue": job.queue, "server": self.server}
        if "Account_Name" in words:
            record["Account_Name"] = words["Account_Name"]
        if array is None:
            record["Checkpoint"] = "u"
        record["ctime"] = at(job.submitted)
        if depend := self._depend(job):
            record["depend"] = depend
        record["Error_Path"] = self._path(job, "e", index)
        record |= self._where(job)
        if job.begin is not None and job.state == "queued":
            record["Execution_Time"] = at(job.begin)
        waits = job.state == "queued" and self.machine.dependency(job) is not True
        holds = job.holds | ({"s"} if waits else set())
        record |= {
            "Hold_Types": "".join(sorted(holds)) or "n", "Join_Path": words["Join_Path"], "Keep_Files": "n",
            "Mail_Points": "a", "mtime": at(job.modified), "Output_Path": self._path(job, "o", index),
            "Priority": words["Priority"], "qtime": at(job.submitted), "Rerunable": words["Rerunable"],
            "Resource_List": words["resources"], "schedselect": words["select"],
        }  # fmt: skip
        if job.started is not None:
            record["stime"] = at(job.started)
        if job.stopped is not None and ran:
            record["obittime"] = at(job.stopped)
        if ran:
            record |= {"session_id": words.get("session_id", 500), "jobdir": words["home"]}
        record |= {
            "substate": substate, "Variable_List": words["Variable_List"], "euser": job.user,
            "egroup": job.group,
        }  # fmt: skip
        if ran:
            record["hashname"] = job.id
        record |= {"queue_rank": int(job.submitted * 1e6), "queue_type": "E"}
        record |= self._history(job, array, state, str(record.get("exec_vnode", "")))
        record["project"] = words["project"]
        if ran:
            record["run_version"] = job.executions
        record["Submit_Host"] = self.server
        return record

    def _used(self, job: Job) -> dict[str, Any]:
        """What a job has used."""
        return {
            "cpupercent": 0, "cput": "00:00:00", "mem": "4692kb",
            "ncpus": sum(share.processors for share in job.shares), "vmem": "7684kb",
            "walltime": text.duration(self.machine.elapsed(job)),
        }  # fmt: skip

    def _where(self, job: Job) -> dict[str, Any]:
        """Where a job runs, or ran."""
        if not job.shares:
            return {}
        numbers = job.words.get("numbers", range(1 << 20))
        hosts = [
            f"{self.machine.nodes[share.node].host}/{number}*{share.processors}"
            for share, number in zip(job.shares, numbers, strict=False)
        ]
        return {"exec_host": "+".join(hosts), "exec_vnode": "+".join(map(vnode_of, job.shares))}

    def _history(self, job: Job, array: Array | None, state: str, vnodes: str) -> dict[str, Any]:
        """What became of a job, and what it was submitted with."""
        words, ended, ran = job.words, job.state == "ended", job.executions > 0
        found: dict[str, Any] = {}
        if ended and ran:
            when = self.zone.text(job.started or 0.0, "%a %b %d at %H:%M")
            end = "finished" if job.outcome == "completed" else "failed"
            found["comment"] = f"Job run at {when} on {vnodes} and {end}"
        if state not in ("W", "H"):
            found["etime"] = self._clock(max(job.submitted, job.begin or 0.0))
        if ran:
            found["run_count"] = job.executions
        if ended and ran:
            found["Stageout_status"] = 1
        if words.get("Exit_status") is not None:
            found["Exit_status"] = words["Exit_status"]
        if array is None:
            found["Submit_arguments"] = words["Submit_arguments"]
        else:
            found |= {"array_id": array.id, "array_index": job.index}
        if ended:
            found["history_timestamp"] = words["history_timestamp"]
        return found

    def _depend(self, job: Job) -> str:
        parts: dict[str, list[str]] = {}
        for kind, other in job.words["depend"]:
            parts.setdefault(kind, []).append(f"{other}@{self.server}")
        for other_job in self.machine.alive.values():
            for kind, other in other_job.words["depend"]:
                if other == job.id:
                    parts.setdefault(BEFORE[kind], []).append(f"{other_job.id}@{self.server}")
        return ",".join(":".join([kind, *others]) for kind, others in parts.items())

    # ------------------------------------------------------------------ server and queues

    def _state_count(self, jobs: Iterable[Job]) -> str:
        counts = dict.fromkeys("TQHWREB", 0)
        arrays = set()
        for job in jobs:
            array = self._array(job)
            if array is not None and array.id not in arrays:
                arrays.add(array.id)
                counts["B"] += any(element.executions for element in array.elements)
            letter = self._letter(job)[0]
            letter = "R" if letter == "S" else letter
            if letter in counts:
                counts[letter] += 1
        names = ("Transit", "Queued", "Held", "Waiting", "Running", "Exiting", "Begun")
        return "".join(f"{name}:{count} " for name, count in zip(names, counts.values(), strict=True))

    def _assigned(self, jobs: Iterable[Job]) -> dict[str, int]:
        running = [job for job in jobs if job.state in ("running", "starting")]
        found = {
            "ncpus": sum(share.processors for job in running for share in job.shares),
            "nodect": sum(len(job.shares) for job in running),
        }
        return found

    def _queue_record(self, queue: Queue) -> dict[str, Any]:
        jobs = [job for job in self.machine.alive.values() if job.queue == queue.name]
        record: dict[str, Any] = {
            "queue_type": "Execution",
            "total_jobs": len(jobs),
            "state_count": self._state_count(jobs),
            **queue.attributes,
        }
        if any(job.state in ("running", "starting") for job in jobs):
            record["resources_assigned"] = self._assigned(jobs)
        return record | {"enabled": str(queue.enabled), "started": str(queue.started)}

    def _server_record(self) -> dict[str, Any]:
        alive = list(self.machine.alive.values())
        return {
            "server_state": "Active" if self.scheduling else "Idle",
            "server_host": self.server,
            "scheduling": str(self.scheduling),
            "managers": "headway@*,root@*",
            "total_jobs": len(self.machine.jobs),
            "state_count": self._state_count(alive),
            "default_queue": self.default_queue,
            "log_events": 511,
            "mailer": "/usr/sbin/sendmail",
            "mail_from": "adm",
            "query_other_jobs": "True",
            "resources_default": {"ncpus": 1},
            "default_chunk": {"ncpus": 1},
            "resources_assigned": self._assigned(alive),
            "scheduler_iteration": 600,
            "flatuid": "True",
            "resv_enable": "True",
            "node_fail_requeue": 310,
            "max_array_size": 10000,
            "resend_term_delay": 5,
            "pbs_license_min": 0,
            "pbs_license_max": 2147483647,
            "pbs_license_linger_time": 31536000,
            "license_count": "Avail_Global:1000000 Avail_Local:1000000 Used:0 High_Use:0",
            "pbs_version": VERSION,
            "eligible_time_enable": "False",
            "job_history_enable": "True",
            "max_concurrent_provision": 5,
            "clear_topjob_estimates_enable": "False",
            "power_provisioning": "False",
            "max_job_sequence_id": 9999999,
        }
