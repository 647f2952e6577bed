"""What Slurm's and PBS's accounting tell of a few jobs, for tests."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: The columns of Slurm's.
HEADER = "JobIDRaw|JobName|User|Comment|NNodes|NCPUS|ElapsedRaw|End|State|Partition"
SACCT = f"""{HEADER}
12|ft-b|ann|scopred:app=ft;N=8|2|32|80|2026-11-20T10:00:00|COMPLETED|batch
11|ft-b|ann|scopred:app=ft;N=4|1|16|40|2026-11-20T09:00:00|COMPLETED|batch
11.batch|batch||| 1|16|40|2026-11-20T09:00:00|COMPLETED|
13|x|bob||1|16|7|2026-11-20T09:30:00|CANCELLED by 1000|batch
14|x|bob||1|16|0|Unknown|PENDING|batch
15|x|bob|scopred:app=ft;N=zero|1|16|9|2026-11-20T09:40:00|COMPLETED|batch
"""
#: With what a trace needs, limits included.
LIMITED = """JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|NCPUS|State|Partition
7|ann|2026-11-20T08:59:00|2026-11-20T09:00:00|2026-11-20T09:01:00|60|10|4|COMPLETED|long
8|bob|2026-11-20T09:00:00|2026-11-20T09:00:00|2026-11-20T09:01:00|60|UNLIMITED|1|FAILED|batch
9|ann|2026-11-20T08:58:00|Unknown|2026-11-20T09:05:00|0|20|1|CANCELLED by 5|batch
10|ann|2026-11-20T09:01:00|2026-11-20T09:01:30|2026-11-20T09:03:00|90|5|2|TIMEOUT|batch
"""
PBS = """11/20/2026 09:00:00;S;7.server;user=ann jobname=ft
11/20/2026 10:00:00;E;7.server;user=ann account="scopred:app=ft;N=4" jobname=ft queue=workq start=100 \
end=140 Exit_status=0 Resource_List.ncpus=16 Resource_List.nodect=1
11/20/2026 10:00:01;E;8.server;user=bob jobname=x queue=workq start=200 end=207 Exit_status=271
"""


def in_seconds(text: str) -> str:
    """The same with ``SLURM_TIME_FORMAT=%s``."""

    def seconds(found: re.Match[str]) -> str:
        return str(int(datetime.fromisoformat(found[0]).replace(tzinfo=UTC).timestamp()))

    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", seconds, text)
