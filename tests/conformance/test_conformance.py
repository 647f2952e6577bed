"""What every adapter must show, on every cluster that there is."""

from headway.conformance.suite import *  # noqa: F403 (the suite's tests)
