"""The scheduler core: one step of it is :meth:`Scheduler.step` (:mod:`headway.scheduler.step`)."""

from headway.scheduler.step import OWN_STATE, Scheduler, plain_clock

__all__ = ["OWN_STATE", "Scheduler", "plain_clock"]
