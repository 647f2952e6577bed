"""Workloads: traces read, written, filtered, and turned into the jobs of an emulation."""

from headway.workload.emulation import estimates, sizes, to_records, trace_jobs
from headway.workload.filters import (
    drop_larger_than,
    first,
    last,
    offered_load,
    scale_arrivals,
    scale_runtimes,
    window,
)
from headway.workload.jobs import TraceCommand, TraceJob
from headway.workload.models import Workload, WorkloadModel
from headway.workload.schedule import schedule_records, write_schedule
from headway.workload.swf import read_swf, write_swf
from headway.workload.trace import Column, Issue, Trace

__all__ = [
    "Column",
    "Issue",
    "Trace",
    "TraceCommand",
    "TraceJob",
    "Workload",
    "WorkloadModel",
    "drop_larger_than",
    "estimates",
    "first",
    "last",
    "offered_load",
    "read_swf",
    "scale_arrivals",
    "scale_runtimes",
    "schedule_records",
    "sizes",
    "to_records",
    "trace_jobs",
    "window",
    "write_schedule",
    "write_swf",
]
