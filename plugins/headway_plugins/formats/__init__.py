"""Formats of workload files that other simulators and archives have; see :mod:`headway.workload.format`."""
