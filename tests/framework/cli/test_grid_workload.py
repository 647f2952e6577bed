"""Users of a grid site on the command line: generated, and fitted to a log."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commandline import Headway

from headway.workload import read_swf
from headway.workload.trace import Column

FITTED = """\
model: login-logout
users:
- {user: 7, group: 3, lambda: 0.001, delta: 0.002, mu: 0.05}
- {user: 9, lambda: 1, delta: 0, mu: 0.001}
runtimes:
  all: {knots: [1, 10], masses: [1.0]}
  groups: {3: {knots: [100, 200], masses: [1.0]}}
"""


def test_a_workload_of_fitted_users_of_a_file(headway: Headway) -> None:
    Path("site.yaml").write_text(FITTED)
    ran = headway("generate", "login-logout", "--set", "file=site.yaml", "--set", "days=2", "-o", "a.swf")
    assert ran.code == 0, ran.err
    records = read_swf("a.swf", strict=True).records
    for user, group, low, high in ((7, 3, 100, 200), (9, -1, 1, 10)):
        own = records[records[:, Column.USER] == user]
        assert len(own) > 50
        assert (own[:, Column.GROUP] == group).all()
        assert own[:, Column.RUNTIME].min() >= low and own[:, Column.RUNTIME].max() <= high


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("model: lublin\nusers: []\n", "login-logout"),
        (FITTED.replace("mu: 0.05", "mu: -1"), "users[0].mu"),
        (FITTED.replace("delta: 0.002", "delta: .nan"), "users[0].delta"),
        (FITTED.replace("[100, 200]", "[200, 100]"), "knots above 0 s that rise"),
        (FITTED.replace("users:", "people:"), "people"),
        ("[1, 2]", "expected the keys model, users and runtimes, found list"),
        ("{", "site.yaml"),
    ],
)
def test_says_what_is_wrong_with_a_file(headway: Headway, text: str, what: str) -> None:
    Path("site.yaml").write_text(text)
    ran = headway("generate", "login-logout", "--set", "file=site.yaml")
    assert ran.code == 2
    assert "site.yaml" in ran.err and what in ran.err.replace("\n", " ")
    assert not Path("login-logout.swf").exists()


def test_users_fitted_to_a_log_are_found_again_in_what_they_generate(headway: Headway) -> None:
    group = "{name: A, lambda: 0.001, delta: 0.002, mu: 0.05}"
    made = headway(
        "generate",
        "login-logout",
        "--set",
        f"groups=[{group}, lpc-dzero]",
        "--set",
        "days=20",
        "-o",
        "log.swf",
    )
    assert made.code == 0, made.err
    first = headway("arrivals", "fit", "log.swf", "-o", "site.yaml")
    assert first.code == 0, first.err
    assert "2 users" in first.out and "headway generate login-logout --set file=site.yaml" in first.out
    again = headway(
        "generate", "login-logout", "--set", "file=site.yaml", "--set", "days=20", "-o", "again.swf"
    )
    assert again.code == 0, again.err
    second = headway(
        "arrivals", "fit", "again.swf", "-o", "again.yaml", "--method", "counts", "--by", "group"
    )
    assert second.code == 0, second.err
    one, other = (yaml.safe_load(Path(name).read_text())["users"][0] for name in ("site.yaml", "again.yaml"))
    for rate, wanted in (("lambda", 0.001), ("delta", 0.002), ("mu", 0.05)):
        assert one[rate] == pytest.approx(wanted, rel=0.2)
        assert other[rate] == pytest.approx(wanted, rel=0.35)


def test_a_log_without_bursts_or_time_to_fit(headway: Headway) -> None:
    line = "{n} {at} -1 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1"
    Path("one.swf").write_text("\n".join(line.format(n=n, at=5) for n in (1, 2)) + "\n")
    ran = headway("arrivals", "fit", "one.swf")
    assert ran.code == 2 and "expected jobs over some time, found them from 5 to 5 s" in ran.err
    ran = headway("arrivals", "fit", "one.swf", "-o", "site.json")
    assert ran.code == 2 and "expected a file that ends in .yaml" in ran.err
