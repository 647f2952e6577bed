"""The node agent: what a node's clock, energy counters and jobs are, and setting the clock.

A small program for the nodes themselves (``headway node-agent``), called over SSH, by a prolog or by
hand. It talks to the kernel alone, never to a batch system or to the daemon.
"""
