"""What only the scheduler can measure, counted in memory while it runs: for metrics and alerts.

:class:`headway.measured.measures.Measures` counts, cycle by cycle; :mod:`headway.measured.report` is what it
tells; :mod:`headway.measured.exposition` writes that as Prometheus and OpenMetrics read it.
"""
