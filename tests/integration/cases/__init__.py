"""What must hold on each real batch system: one class an idea, whose tests have a fixture ``system``.

``test_on_slurm.py``, ``test_on_pbs.py`` and ``test_on_lsf.py`` run them.
"""
