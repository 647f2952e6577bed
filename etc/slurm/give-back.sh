#!/bin/sh
# Hand control back to Slurm: release the jobs that headway holds, and only those.
#
#     give-back.sh PARTITION[,PARTITION...]
#
# Stop headway and switch the submit filter off first, else both go on holding jobs. A job is
# headway's when its AdminComment begins with "headway:"; holds of users and of administrators
# stay. A node list that headway left is replaced by what the job's user had asked for.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: give-back.sh PARTITION[,PARTITION...]" >&2
    exit 2
fi
case $1 in
    -* | *[!A-Za-z0-9_.,-]*)
        echo "give-back.sh: '$1' is no list of partitions" >&2
        exit 2
        ;;
esac

failed=0
listing=$(SLURM_BITSTR_LEN=0 squeue -h -a -t PD -p "$1" -O 'JobArrayID:5000,Reason:60,AdminComment:5000')
while read -r job reason comment; do
    case $comment in
        headway:new | headway:held) ;;
        headway:pin=*)
            asked=${comment#*;asked=}
            asked=${asked%%;*}
            scontrol update "JobId=${job%%%*}" "ReqNodeList=$asked" || failed=1
            ;;
        *) continue ;;
    esac
    # An array's rest is listed as 12_[3-9%2]; the limit is no part of its name.
    case $job in
        *%*) job="${job%%%*}]" ;;
    esac
    if scontrol update "JobId=$job" AdminComment= && scontrol release "$job"; then
        echo "released $job ($reason)"
    else
        failed=1
    fi
done <<END
$listing
END
exit $failed
