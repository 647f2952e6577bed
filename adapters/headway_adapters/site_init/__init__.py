"""What ``headway init`` asks Slurm, PBS and LSF, and the files that it writes for a site
(:mod:`headway.adapter.survey`)."""
