"""The node agent: what a node's clock, energy counters and jobs are, setting the clock, and two tiers.

A small program for the nodes themselves (``headway node-agent``), called over SSH, by a prolog or by hand;
``serve`` is a service that the daemon asks (:mod:`headway.link`). It talks to the kernel
alone, never to a batch system.
"""
