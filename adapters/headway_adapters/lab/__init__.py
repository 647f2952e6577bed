"""A throw-away batch system, a stream of jobs and the daemon, by one command; nothing is left of it.

``headway lab`` (``command.py``) runs a :class:`headway_adapters.lab.lab.Lab`: a batch system (``slurm.py``
with Slurm's own daemons, ``emulated.py`` for PBS and LSF), the jobs that a workload model draws
(``stream.py``), and ``headway run`` over both.
"""
