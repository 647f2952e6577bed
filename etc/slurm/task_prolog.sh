#!/bin/sh
# TaskProlog for moldable jobs: SLURM_NTASKS and SLURM_NPROCS say what a job has, not what it was submitted with.
#
# Slurm 22.05 leaves the submitter's numbers there when a waiting job is made smaller, and a plain srun then ends
# in "More processors requested than permitted". 24.11 sets them itself. Copy this file to all nodes and name it
# in slurm.conf (TaskProlog=...); a site that has a TaskProlog calls it from there.
[ -z "$SLURM_STEP_ID" ] && [ -n "$SLURM_NTASKS" ] && [ -n "$SLURM_TASKS_PER_NODE" ] || exit 0

# "4(x2),1" are 9 tasks.
total=0
for part in $(echo "$SLURM_TASKS_PER_NODE" | tr , ' '); do
    tasks=${part%%\(*}
    case $part in *\(x*) times=${part##*\(x} times=${times%\)} ;; *) times=1 ;; esac
    total=$((total + tasks * times))
done
if [ "$total" -gt 0 ] && [ "$total" -lt "$SLURM_NTASKS" ]; then
    echo "export SLURM_NTASKS=$total"
    echo "export SLURM_NPROCS=$total"
fi
