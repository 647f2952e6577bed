"""A client of ``headway serve``, for programs: typed, and without any library beside headway's own.

>>> from headway.client import Client
>>> cluster = Client("unix:/run/headway-web/web.sock")
>>> cluster.jobs(mine=True).jobs                                            # doctest: +SKIP

What is answered are the reports of :mod:`headway.inquiry.reports` and of :mod:`headway.service.protocol`, the
same as of the commands' ``--json``.
"""

from headway.client.client import Answer, Client, Refused
from headway.client.events import Event

__all__ = ["Answer", "Client", "Event", "Refused"]
