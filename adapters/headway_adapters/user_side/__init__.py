"""What an ordinary user can do with Slurm, PBS and LSF (:mod:`headway.adapter.user_side`).

The queue is read as the adapters read it, by the same readers, with no command that changes anything. Jobs
are submitted and cancelled with argument vectors; LSF's ``bsub`` alone hands its words to a shell, quoted.
"""
