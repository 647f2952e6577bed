"""Kill tests: a real batch system, mixed jobs, and SIGKILL of headway and of the system at random moments.

``make torture SYSTEM=slurm KILLS=200`` runs one; :mod:`torture.campaign` says what it does, and
:mod:`torture.verdict` what must hold afterwards.
"""
