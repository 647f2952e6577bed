"""Images: complete or not, damaged or not, too old, too many, and written by users who may not be trusted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from headway.errors import Failure
from headway_plugins.migration.images import Images, Unconfirmed


def write(place: Path, *, complete: str | None = "") -> None:
    """A job's image: a state file, and the file that says that it is complete."""
    place.mkdir(exist_ok=True)
    (place / "state").write_bytes(b"x" * 1000)
    if complete is not None:
        (place / "complete").write_text(complete)


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path, method="test", quota=10_000)


def test_it_is_complete_only_once_the_job_says_so_after_the_request(images: Images) -> None:
    write(images.place("7"))
    images.prepare("7", "")
    with pytest.raises(Unconfirmed, match="older than the request"):
        images.confirm("7")
    (images.place("7") / "complete").unlink()
    write(images.place("7"))
    found = images.confirm("7")
    assert [(one.name, one.size) for one in found.files] == [("state", 1000)]
    assert images.verify("7") == found == images.manifest("7")


def test_without_a_word_of_the_job_it_is_complete_once_nothing_changes(tmp_path: Path) -> None:
    images = Images(tmp_path, method="test", complete="", settle=0.0)
    images.prepare("7", "")
    with pytest.raises(Unconfirmed, match="nothing was written"):
        images.confirm("7")
    write(images.place("7"), complete=None)
    with pytest.raises(Unconfirmed, match="still changes"):
        images.confirm("7")
    assert images.confirm("7").size == 1000


def test_the_jobs_own_checksums_find_what_was_damaged_on_its_way(images: Images) -> None:
    images.prepare("7", "")
    right = hashlib.sha256(b"x" * 1000).hexdigest()
    write(images.place("7"), complete=f"{right}  state\n")
    images.confirm("7")
    images.prepare("7", "")
    write(images.place("7"), complete=f"{'0' * 64} *./state\n")
    with pytest.raises(Failure, match=r"state: expected SHA-256 000000000000.*found"):
        images.confirm("7")
    images.prepare("7", "")
    write(images.place("7"), complete=f"{right}  other\n")
    with pytest.raises(Failure, match="names 'other', which is not there"):
        images.confirm("7")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda state: state.write_bytes(b"x" * 999), "expected 1000 bytes, found 999 bytes"),
        (lambda state: state.write_bytes(b"y" * 1000), "expected SHA-256"),
        (lambda state: state.unlink(), "No such file"),
    ],
)
def test_damage_after_the_confirmation_is_found(images: Images, damage: object, said: str) -> None:
    images.prepare("7", "")
    write(images.place("7"))
    images.confirm("7")
    damage(images.place("7") / "state")  # type: ignore[operator]
    with pytest.raises(Failure, match=said):
        images.verify("7")
    aside = images.put_aside("7")
    assert aside.is_dir() and not images.place("7").exists() and images.manifest("7") is None


def test_what_nobody_confirmed_is_not_taken_for_an_image(images: Images) -> None:
    write(images.place("7"))
    with pytest.raises(Failure, match="no image of it was confirmed"):
        images.verify("7")


def test_a_full_directory_is_said_before_anything_is_asked_for(images: Images, tmp_path: Path) -> None:
    write(images.place("1"))
    (images.place("1") / "state").write_bytes(b"x" * 10_000)
    with pytest.raises(Failure, match=r"images of 10\.0 kB fill the quota of 10\.0 kB"):
        images.prepare("7", "")
    assert not images.check()[0].ok
    with pytest.raises(Failure, match="free"):
        Images(tmp_path, method="test", spare=1 << 60).prepare("7", "")


def test_one_that_bursts_the_quota_is_refused(images: Images) -> None:
    images.prepare("7", "")
    write(images.place("7"))
    (images.place("7") / "state").write_bytes(b"x" * 20_000)
    with pytest.raises(Failure, match=r"more than 10\.0 kB"):
        images.confirm("7")


def test_symbolic_links_are_not_followed(images: Images, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "state").write_text("secret")
    images.place("7").symlink_to(secret)
    with pytest.raises(Failure, match="expected a directory"):
        images.prepare("7", "")
    images.place("7").unlink()
    images.prepare("7", "")
    (images.place("7") / "complete").symlink_to(secret / "state")
    with pytest.raises(Unconfirmed):
        images.confirm("7")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, which only root can")
def test_a_directory_of_somebody_else_is_refused(images: Images) -> None:
    images.place("7").mkdir()
    os.chown(images.place("7"), 12345, -1)
    with pytest.raises(Failure, match="belong to the job's user, found user 12345"):
        images.prepare("7", "nobody")


def test_a_job_is_not_a_path(images: Images) -> None:
    for name in ("../7", "a/b", "", ".headway", "7\n"):
        with pytest.raises(Failure, match="expected a job's identifier"):
            images.prepare(name, "")


def test_tidying_goes_by_age_and_quota_and_leaves_those_of_living_jobs(tmp_path: Path) -> None:
    images = Images(tmp_path, method="test", keep=1000.0, quota=2500)
    for job, age in (("1", 5000), ("2", 5000), ("3", 900), ("4", 800), ("5", 700)):
        write(images.place(job), complete=None)
        for path in (images.place(job) / "state", images.place(job)):
            stamp = path.stat().st_mtime - age
            os.utime(path, (stamp, stamp))
    said = images.tidy(frozenset({"2"}))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".headway") == ["2", "5"]
    assert len(said) == 3 and "days old" in said[0] and "more than 2.5 kB" in said[1]


def test_records_are_the_daemons_alone(tmp_path: Path) -> None:
    (tmp_path / ".headway").mkdir(mode=0o777)
    (tmp_path / ".headway").chmod(0o777)
    images = Images(tmp_path, method="test")
    images.prepare("7", "")
    write(images.place("7"))
    with pytest.raises(Failure, match="only the daemon's user can write to"):
        images.confirm("7")


def test_a_directory_that_is_open_to_all_needs_the_sticky_bit(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert "every user can remove" in Images(tmp_path, method="test").check()[0].detail
    tmp_path.chmod(0o1777)
    assert Images(tmp_path, method="test").check()[0].ok
    assert not Images(tmp_path / "none", method="test").check()[0].ok
