"""The link between the daemon and the agents on the nodes: authenticated, and nothing on it can be repeated.

A line of JSON each way and time, over a Unix socket or TCP. Both sides have the site's key. The agent begins
with a random number, the daemon answers with one of its own, and from the key and both a key of this
connection alone is made; each message carries its number and an HMAC-SHA256 over direction, number and text.
So a message that was recorded is refused on every other connection, and a second time on the same.
Messages are not secret: they name jobs, tiers and processor use.
"""

from headway_adapters.node_agent.link.channel import Channel, Refused
from headway_adapters.node_agent.link.client import Client
from headway_adapters.node_agent.link.keys import read_key
from headway_adapters.node_agent.link.server import Server

__all__ = ["Channel", "Client", "Refused", "Server", "read_key"]
