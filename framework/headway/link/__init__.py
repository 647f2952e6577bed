"""An authenticated link: between the daemon and the agents on the nodes, and between a bundle's manager and
its workers. Nothing on it can be repeated.

A line of JSON each way and time, over a Unix socket or TCP. Both sides have one key: the site's, or the
bundle's. The server begins with a random number; the client answers with a random number of its own. From
the key and both numbers a key of this connection alone is made. Each message carries its number and an
HMAC-SHA256 over direction, number and text.
So a message that was recorded is refused on every other connection, and a second time on the same.
Messages are not secret: they name jobs, tiers and processor use.
"""

from headway.link.channel import Channel, Refused
from headway.link.client import Client
from headway.link.keys import read_key
from headway.link.server import Server

__all__ = ["Channel", "Client", "Refused", "Server", "read_key"]
