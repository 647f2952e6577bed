"""The emulated peer network of the Wave Scheduler: 5,000 hosts and up to 100,000 jobs, 1,000 a day.

`make bench ARGS="-s -k wave"` tells the figures.
"""

import subprocess
import sys
from time import process_time

import pytest

from headway_plugins.wave.metrics import measured
from headway_plugins.wave.options import Options
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.population import population

pytestmark = pytest.mark.benchmark
HOSTS, A_DAY = 5000, 0.2
DAYS = 25, 50, 100
LINEAR = ("no-migration", "migration-adaptive", "wave-adaptive")
#: All in a process of its own, so that its memory is that of this run alone.
ALONE = f"""
import resource, sys
from headway_plugins.wave.options import Options
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.population import population
drawn = population(1, free=0.15, clients={A_DAY}, hosts={HOSTS}, job_days={DAYS[-1]})
run = drawn.run(POLICIES["wave-adaptive"], Options())
print(len(run.courses), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def say(text):
    print(f"\nwave: {text}", file=sys.__stderr__)


def test_the_network_is_drawn():
    began = process_time()
    drawn = population(1, free=0.15, clients=A_DAY, hosts=HOSTS)
    overlay = drawn.by_zone()
    say(f"{HOSTS:,} hosts, their calendars and the overlay: {process_time() - began:.2f} s")
    assert len(overlay) == HOSTS


@pytest.mark.parametrize("name", LINEAR)
def test_time_is_linear_in_jobs(name):
    """Microseconds a job do not grow with the jobs: each day is like the last."""
    each = []
    for days in DAYS:
        drawn = population(1, free=0.15, clients=A_DAY, hosts=HOSTS, job_days=days)
        began = process_time()
        run = drawn.run(POLICIES[name], Options())
        each.append(1e6 * (process_time() - began) / len(run.courses))
        assert measured(run).unfinished == 0
    jobs = ", ".join(f"{int(days * A_DAY * HOSTS):,}" for days in DAYS)
    say(f"{name}, {jobs} jobs: {', '.join(f'{one:,.0f}' for one in each)} us a job")


def test_memory_of_100_000_jobs():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    jobs, kib = map(int, done.stdout.split())
    say(f"{HOSTS:,} hosts, {jobs:,} jobs: {kib / 2**20:.2f} GiB")
    assert jobs == 100_000 and kib < 2 * 2**20
