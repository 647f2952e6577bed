"""What ``headway check`` says of copies between real sites."""

from __future__ import annotations

from pathlib import Path

import pytest
from directory_stores import Stores

from headway.adapter import Check
from headway.model.transfers import Transfers
from headway_adapters.federation.live_checks import check_transfers


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path)


def checked(stores: Stores, transfers: Transfers) -> dict[str, Check]:
    return {one.subject: one for one in check_transfers(transfers, lambda pools: stores.sites())}


def test_all_is_there(stores: Stores) -> None:
    found = checked(stores, stores.transfers())
    assert all(one.ok and one.known for one in found.values()), found
    commands = {f"transfers.{name}" for name in ("copy", "check", "size", "remove")}
    assert set(found) == {*commands, "a: store", "b: store", "c: store"}


def test_without_stores_nothing_is_said_and_without_a_command_that_nothing_is_copied(stores: Stores) -> None:
    assert checked(stores, Transfers()) == {}
    (one,) = checked(stores, Transfers(stores={"a": "/x"})).values()
    assert (one.subject, one.ok, one.known) == ("transfers.copy", True, False)


@pytest.mark.parametrize(
    ("subject", "detail", "changes"),
    [
        ("transfers.copy", "the program 'no-such' is not installed", {"copy": ("no-such", "{source}")}),
        ("transfers.check", "the program 'no-such' is not installed", {"check": ("no-such", "{store}")}),
        ("transfers.remove", "no copy can be dropped", {"remove": ()}),
        ("b: store", "it has no path", {"stores": {"a": "/", "b": ""}}),
        ("b: store", "/no/such: there is no such directory here", {"stores": {"a": "/", "b": "/no/such"}}),
        ("b: store", "h:/d: 2 sites have this path", {"stores": {"a": "h:/d", "b": "h:/d"}}),
        ("transfers.copy", "no cluster has a store", {"stores": {}}),
        ("dataset era5", "/era5: a is to have it, and it is not there", {"stores": {"a": "/"}}),
    ],
)
def test_what_is_missing_is_named(
    stores: Stores, subject: str, detail: str, changes: dict[str, object]
) -> None:
    checks = check_transfers(stores.transfers(**changes), lambda pools: stores.sites())
    failed = {one.subject: one for one in checks if not one.ok}
    assert detail in failed[subject].detail
    assert failed[subject].remedy


def test_what_cannot_be_told_without_a_check_is_said(stores: Stores) -> None:
    one = checked(stores, stores.transfers("check"))["transfers.check"]
    assert (one.ok, one.known) == (True, False)
    assert "as soon as its command ends with 0" in one.detail
