"""What every adapter must show: ``from headway.conformance.suite import *`` in a test file."""

from headway.conformance.suite.capabilities import TestCapabilities
from headway.conformance.suite.failing import TestFaults, TestOutage, TestRestart
from headway.conformance.suite.holding import TestHold
from headway.conformance.suite.machine import TestNodes, TestReservations
from headway.conformance.suite.monitor import TestMonitor
from headway.conformance.suite.names import TestNames
from headway.conformance.suite.queued import TestWaitingJobs
from headway.conformance.suite.running import TestRunningJobs
from headway.conformance.suite.seeing import TestSeeing
from headway.conformance.suite.starting import TestStart

__all__ = [
    "TestCapabilities",
    "TestFaults",
    "TestHold",
    "TestMonitor",
    "TestNames",
    "TestNodes",
    "TestOutage",
    "TestReservations",
    "TestRestart",
    "TestRunningJobs",
    "TestSeeing",
    "TestStart",
    "TestWaitingJobs",
]
