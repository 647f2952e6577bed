"""PBS hook for headway: a start by a daemon after which another has taken over is refused.

Install it as root on the server's host:

    qmgr -c "create resource headway_epoch type=long, flag=r"
    qmgr -c "create resource headway_leader type=string, flag=r"
    qmgr -c "create hook headway_fence event=runjob"
    qmgr -c "import hook headway_fence application/x-python default headway_fence.py"

Each daemon that takes the server over has a higher number than all before, its epoch. It writes the number
into the server's resources_available.headway_epoch, which only managers can, and PBS keeps it over restarts
of the server. Its starts carry it: qrun -H '(host:ncpus=4:headway_epoch=7)' JOB. Starts without a number, by
people or by PBS's own scheduler, are let through. With flag=r no user can ask for the resource.
"""

import re

import pbs

event = pbs.event()
found = re.search(r"[:(]headway_epoch=([0-9]+)", str(event.job.exec_vnode or ""))
if found is not None:
    highest = pbs.server().resources_available["headway_epoch"]
    if highest is not None and int(found.group(1)) < int(highest):
        event.reject(f"headway fence: epoch={int(highest)}")
event.accept()
