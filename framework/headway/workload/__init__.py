"""Workloads: traces read, written, filtered, and turned into the jobs of an emulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.workload.cwf import CloudTrace, CommandRow, cwf_jobs, read_cwf, to_cloud_records, write_cwf
    from headway.workload.emulation import estimates, sizes, to_records, trace_jobs
    from headway.workload.estimate_models import (
        ADD,
        REPLACE,
        ChosenModel,
        EstimateModel,
        Estimates,
        RunJobs,
        estimated_trace,
        estimated_workload,
        run_jobs,
    )
    from headway.workload.filters import (
        drop_larger_than,
        first,
        last,
        offered_load,
        scale_arrivals,
        scale_runtimes,
        scale_sizes,
        window,
    )
    from headway.workload.format import Format
    from headway.workload.formats import format_to_write, read_trace, write_trace
    from headway.workload.jobs import TraceCommand, TraceJob
    from headway.workload.models import Workload, WorkloadModel
    from headway.workload.resampling import resampled
    from headway.workload.schedule import schedule_records, write_schedule
    from headway.workload.swf import read_swf, write_swf
    from headway.workload.trace import Column, Issue, Trace

__all__ = [
    "ADD",
    "REPLACE",
    "ChosenModel",
    "CloudTrace",
    "Column",
    "CommandRow",
    "EstimateModel",
    "Estimates",
    "Format",
    "Issue",
    "RunJobs",
    "Trace",
    "TraceCommand",
    "TraceJob",
    "Workload",
    "WorkloadModel",
    "cwf_jobs",
    "drop_larger_than",
    "estimated_trace",
    "estimated_workload",
    "estimates",
    "first",
    "format_to_write",
    "last",
    "offered_load",
    "read_cwf",
    "read_swf",
    "read_trace",
    "resampled",
    "run_jobs",
    "scale_arrivals",
    "scale_runtimes",
    "scale_sizes",
    "schedule_records",
    "sizes",
    "to_cloud_records",
    "to_records",
    "trace_jobs",
    "window",
    "write_cwf",
    "write_schedule",
    "write_swf",
    "write_trace",
]

__getattr__ = late(
    __name__,
    {
        ".cwf": "CloudTrace CommandRow cwf_jobs read_cwf to_cloud_records write_cwf",
        ".emulation": "estimates sizes to_records trace_jobs",
        ".estimate_models": "ADD REPLACE ChosenModel EstimateModel Estimates RunJobs estimated_trace "
        "estimated_workload run_jobs",
        ".filters": "drop_larger_than first last offered_load scale_arrivals scale_runtimes "
        "scale_sizes window",
        ".format": "Format",
        ".formats": "format_to_write read_trace write_trace",
        ".jobs": "TraceCommand TraceJob",
        ".models": "Workload WorkloadModel",
        ".resampling": "resampled",
        ".schedule": "schedule_records write_schedule",
        ".swf": "read_swf write_swf",
        ".trace": "Column Issue Trace",
    },
)
