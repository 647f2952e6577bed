"""`headway protect`: sealed files, keys, manifests, and a command between them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

from headway.errors import Damaged, Failure, HeadwayError, UserError
from headway_plugins.security.measured import LEVELS
from headway_plugins.security.protection.algorithms import BUFFER, CIPHERS
from headway_plugins.security.protection.keys import Keys, make_keys
from headway_plugins.security.protection.label import label_text, parse_label, parse_took, took_text
from headway_plugins.security.protection.manifest import list_files, read_manifest, write_manifest
from headway_plugins.security.protection.report import Service, read_report
from headway_plugins.security.protection.sealed import seal, sealed_name, sealed_with, unseal

pytest.importorskip("cryptography")
SECRET = bytes(range(32))
OTHER = bytes(32)


@pytest.fixture(scope="module")
def made_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "keys"
    make_keys(folder)
    return folder


@pytest.fixture
def keys(tmp_path: Path, made_keys: Path) -> Keys:
    return Keys(shutil.copytree(made_keys, tmp_path / "keys"))


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


# ---------------------------------------------------------------------- labels


def test_a_label_is_read_as_it_was_written_and_found_among_other_words():
    options = {"authentication": "Ed25519", "encryption": "AES-256-GCM"}
    text = label_text(options)
    assert text == "encryption=AES-256-GCM,authentication=Ed25519"
    assert parse_label(text, "here") == options
    services = [
        Service("encryption", "AES-256-GCM", 2, 1000, 0.25),
        Service("integrity", "SHA-512", 0, 0, 0.0),
        Service("encryption", "AES-256-GCM", 1, 10, 0.5),
    ]
    assert took_text(services) == "AES-256-GCM:1000:0.250000,AES-256-GCM:10:0.500000"
    assert parse_took(took_text(services) + ",nonsense,DES:1:1.0,SHA-512:-1:1.0") == {
        "AES-256-GCM": (1010, 0.75)
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected words such as encryption=AES-256-GCM"),
        ("secrecy=AES-256-GCM", "found 'secrecy=AES-256-GCM'"),
        ("encryption=AES-265-GCM", "Did you mean 'AES-256-GCM'"),
        ("encryption=DES", "nothing here is called 'DES'"),
        ("integrity=SHA-512,integrity=SHA-256", "integrity is there twice"),
        ("integrity=SHA-512;rm -rf /", "nothing here is called 'SHA-512;rm -rf /'"),
    ],
)
def test_what_a_label_may_not_say(text: str, said: str) -> None:
    with pytest.raises(UserError, match=r"here: ") as error:
        parse_label(text, "here")
    assert said in str(error.value)


# ---------------------------------------------------------------------- sealed files


@pytest.mark.parametrize("option", CIPHERS)
@pytest.mark.parametrize("size", [0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER])
def test_what_was_sealed_comes_back(tmp_path: Path, option: str, size: int) -> None:
    content = os.urandom(size)
    path = written(tmp_path / "data", content)
    assert seal(path, SECRET, option) == size
    assert not path.exists() and sealed_name(path).stat().st_mode & 0o777 == 0o600
    assert content[:64] not in sealed_name(path).read_bytes() or size < 16
    assert sealed_with(path, SECRET) == option
    assert unseal(path, SECRET) == size
    assert path.read_bytes() == content and path.stat().st_mode & 0o777 == 0o600
    assert {p.name for p in tmp_path.iterdir()} == {"data", "data.sealed"}


def test_no_two_files_are_sealed_alike(tmp_path: Path) -> None:
    for name in ("a", "b"):
        seal(written(tmp_path / name, b"x" * 100), SECRET, "AES-256-GCM")
    a, b = (sealed_name(tmp_path / name).read_bytes() for name in ("a", "b"))
    assert a[44:] != b[44:]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text[:-20],
        lambda text: text + b"x",
        lambda text: text[:44],
        lambda text: text[: 44 + BUFFER + 16],
        lambda text: text[:44] + text[44 + BUFFER + 16 :] + text[44 : 44 + BUFFER + 16],
        lambda text: text[:8] + bytes([(text[8] + 1) % 3]) + text[9:],
        lambda text: text[:9] + b"\1" + text[10:],
        lambda text: text[:20] + bytes([text[20] ^ 1]) + text[21:],
        lambda text: text[:60] + bytes([text[60] ^ 1]) + text[61:],
        lambda text: text[:-1] + bytes([text[-1] ^ 1]),
    ],
    ids=[
        "cut", "cut more", "longer", "header", "a chunk", "exchanged", "cipher", "padding", "salt", "content",
        "tag",
    ],
)  # fmt: skip
def test_a_sealed_file_that_was_changed_is_refused_and_nothing_is_written(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path / "data", os.urandom(BUFFER + 100))
    seal(path, SECRET, "AES-256-GCM")
    sealed = sealed_name(path)
    sealed.write_bytes(change(sealed.read_bytes()))
    with pytest.raises(Damaged, match=r"data.sealed"):
        unseal(path, SECRET)
    assert [p.name for p in tmp_path.iterdir()] == ["data.sealed"]


def test_wrong_keys_and_files_that_are_in_the_way(tmp_path: Path) -> None:
    path = written(tmp_path / "data", b"content")
    seal(path, SECRET, "AES-128-GCM")
    with pytest.raises(UserError, match=r"sealed with another data key"):
        unseal(path, OTHER)
    path.write_bytes(b"another")
    with pytest.raises(UserError, match=r"exists already and differs from the content of data.sealed"):
        unseal(path, SECRET)
    with pytest.raises(UserError, match=r"is there already; --replace seals over it"):
        seal(path, SECRET, "AES-128-GCM")
    assert path.read_bytes() == b"another"
    path.write_bytes(b"content")
    assert unseal(path, SECRET) == 7
    seal(path, SECRET, "AES-256-GCM", replace=True)
    assert sealed_with(path, SECRET) == "AES-256-GCM"
    (tmp_path / "link").symlink_to(sealed_name(path))
    for bad, why in (
        (tmp_path / "link", "it is a link"),
        (tmp_path, "expected a file"),
        (path, "No such file"),
    ):
        with pytest.raises(UserError, match=why):
            seal(bad, SECRET, "AES-256-GCM")


def in_a_fork(act: Callable[[], None]) -> int:
    """The wait status of a process that does it."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except HeadwayError as error:
            os.write(2, f"{error}\n".encode())
            os._exit(9)
        except BaseException:
            os._exit(8)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def killed_at(step: int, act: Callable[[], None]) -> bool:
    """Whether it came so far: killed where it opens, renames or removes something for that time."""
    left = step

    def hook(event: str, _: object) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.remove"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def begin() -> None:
        sys.addaudithook(hook)
        act()

    status = in_a_fork(begin)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.mark.parametrize("replace", [False, True])
def test_who_is_killed_while_sealing_leaves_the_one_or_the_other(tmp_path: Path, replace: bool) -> None:
    content, step, left = b"precious" * 1000, 0, set()
    killed = True
    while killed:
        step += 1
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "data"
        if replace:
            seal(written(path, b"older"), SECRET, "AES-256-GCM")
        written(path, content)
        killed = killed_at(step, lambda path=path: seal(path, SECRET, "AES-256-GCM", replace=replace))  # type: ignore[misc]
        there = (path.exists(), sealed_name(path).exists())
        left.add(there)
        if path.exists():
            assert path.read_bytes() == content
        else:
            unseal(path, SECRET)
            assert path.read_bytes() == content
        # What is left can be done again.
        seal(path, SECRET, "AES-256-GCM", replace=True)
    assert step > 5 and (False, True) in left and (True, True) in left


def test_who_is_killed_while_decrypting_leaves_the_sealed_file(tmp_path: Path) -> None:
    path = written(tmp_path / "data", b"precious" * 1000)
    seal(path, SECRET, "AES-256-GCM")
    sealed, step = sealed_name(path).read_bytes(), 1
    while killed_at(step, lambda: unseal(path, SECRET)):
        assert sealed_name(path).read_bytes() == sealed
        assert not path.exists() or path.read_bytes() == b"precious" * 1000
        path.unlink(missing_ok=True)
        step += 1
    assert step > 3


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = written(tmp_path / "data", os.urandom(100_000))

    def act() -> None:
        # As a full disk: the system refuses to write on.
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            seal(path, SECRET, "AES-256-GCM")
        except Failure as error:
            assert "data.sealed: cannot be written: File too large" in str(error)
            os._exit(7)

    assert os.waitstatus_to_exitcode(in_a_fork(act)) == 7
    assert [p.name for p in tmp_path.iterdir()] == ["data"] and path.stat().st_size == 100_000


# ---------------------------------------------------------------------- keys


def test_keys_are_made_once_and_are_for_their_owner_alone(keys: Keys) -> None:
    secret = keys.data()
    modes = {path.name: path.stat().st_mode & 0o777 for path in keys.folder.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {n for n in modes if n.endswith(".key")}
    assert {"data.key", "hmac.key", "ed25519.key", "ed25519.pub", "rsa-3072-pss.pub"} <= set(modes)
    assert keys.folder.stat().st_mode & 0o777 == 0o700
    assert make_keys(keys.folder) == [] and Keys(keys.folder).data() == secret


def test_key_files_that_are_refused(keys: Keys) -> None:
    data, signing = keys.folder / "data.key", keys.folder / "ed25519.key"

    def refused(said: str, read: Callable[[Keys], object] = Keys.data) -> None:
        with pytest.raises(UserError) as error:
            read(Keys(keys.folder))
        assert said in str(error.value)

    data.chmod(0o640)
    refused("data.key: other users may read or change it (mode 640); chmod 600")
    data.chmod(0o600)
    keys.folder.chmod(0o777)
    refused("other users may put files there (mode 777)")
    keys.folder.chmod(0o700)
    data.write_bytes(b"short")
    refused("data.key: expected 32 bytes, found 5")
    data.rename(keys.folder / "away")
    refused("there is no such key; `headway security keys")
    data.symlink_to("away")
    refused("it is a link")
    data.unlink()
    os.mkfifo(data, 0o600)
    refused("expected a file")
    signing.write_bytes(b"-----BEGIN NONSENSE-----\n")
    refused("expected a private key of Ed25519 as PEM", lambda k: k.signer("Ed25519"))
    signing.write_bytes((keys.folder / "rsa-3072-pss.key").read_bytes())
    refused("expected a key of Ed25519, found RSAPrivateKey", lambda k: k.signer("Ed25519"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_key_of_somebody_else_is_refused(keys: Keys) -> None:
    os.chown(keys.folder / "data.key", 12345, -1)
    with pytest.raises(UserError, match=r"expected a key of this user, it belongs to user 12345"):
        Keys(keys.folder).data()
    os.chown(keys.folder, 12345, -1)
    with pytest.raises(UserError, match=r"expected a folder of this user"):
        Keys(keys.folder).signer("Ed25519")


# ---------------------------------------------------------------------- manifests


def test_a_manifest_is_signed_by_each_key_and_checked_by_each_digest(tmp_path: Path, keys: Keys) -> None:
    data = written(tmp_path / "data", b"x" * 1000)
    path = tmp_path / "job.manifest"
    options = [option for option in LEVELS["authentication"] if keys.has_signer(option)]
    assert {"HMAC-SHA-256", "Ed25519", "RSA-3072-PSS"} <= set(options)
    write_manifest(path, list_files([data], tmp_path), keys, options)
    manifest = read_manifest(path)
    (listed,) = manifest.files
    for option in options:
        manifest.authenticate(option, keys)
    for option in LEVELS["integrity"]:
        assert manifest.check(listed, option) == 1000
    data.write_bytes(b"x" * 999 + b"y")
    for option in LEVELS["integrity"]:
        with pytest.raises(Damaged, match=f"its digest by {option} differs from the digest in job.manifest"):
            manifest.check(listed, option)
    data.write_bytes(b"x")
    with pytest.raises(Damaged, match=r"expected 1000 bytes as job.manifest says, found 1"):
        manifest.check(listed, "SHA-256")
    data.unlink()
    with pytest.raises(UserError, match=r"cannot be read: No such file"):
        manifest.check(listed, "SHA-256")


def test_manifests_that_are_refused(tmp_path: Path, keys: Keys) -> None:
    data = written(tmp_path / "data", b"x")
    path = tmp_path / "job.manifest"
    listed = list_files([data], tmp_path, ["SHA-256"])
    write_manifest(path, listed, keys, ["Ed25519", "HMAC-SHA-256"])
    good = json.loads(path.read_text())

    def authenticated(file: object, option: str = "Ed25519") -> None:
        path.write_text(file if isinstance(file, str) else json.dumps(file))
        read_manifest(path).authenticate(option, keys)

    authenticated(good)
    changed = {**good, "manifest": good["manifest"].replace('"bytes":1', '"bytes":2')}
    for option in ("Ed25519", "HMAC-SHA-256"):
        with pytest.raises(Damaged, match=f"differs from what was signed by {option}"):
            authenticated(changed, option)
    with pytest.raises(UserError, match=r"expected a signature by RSA-3072-PSS, found Ed25519, HMAC-SHA-256"):
        authenticated(good, "RSA-3072-PSS")
    for text in ("", "{", "[]", '{"manifest": "nothing"}', path.read_text()[:-9]):
        with pytest.raises(Damaged, match=r"expected a manifest of `headway security sign`"):
            authenticated(text)
    with pytest.raises(UserError, match=r"found format 2"):
        authenticated({**good, "manifest": '{"format":2,"files":[]}'})
    path.write_text(json.dumps(good))
    with pytest.raises(UserError, match=r"expected a digest by SHA-512, found SHA-256"):
        read_manifest(path).check(listed[0], "SHA-512")
    make_keys(tmp_path / "others")
    with pytest.raises(UserError, match=r"was made with another key than the key in"):
        read_manifest(path).authenticate("Ed25519", Keys(tmp_path / "others"))


# ---------------------------------------------------------------------- a command between them

ALL = "encryption=AES-256-GCM,integrity=SHA-512,authentication=Ed25519"
COPY = "import pathlib; pathlib.Path('out').write_bytes(pathlib.Path('in').read_bytes()[::-1])"


@pytest.fixture
def headway(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    program = "from headway.cli import main; main()"

    def start(*words: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", program, *words]
        return subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def protected(start: Callable[..., subprocess.Popen[str]], *words: str) -> tuple[int, str, str]:
    process = start("protect", "--keys", "keys", *words)
    out, said = process.communicate()
    return process.returncode, out, said


def test_a_command_reads_what_was_verified_and_its_output_is_sealed(
    tmp_path: Path, keys: Keys, headway
) -> None:
    written(tmp_path / "in", os.urandom(10_000))
    write_manifest(tmp_path / "m", list_files([tmp_path / "in"], tmp_path), keys, ["Ed25519"])
    content = (tmp_path / "in").read_bytes()
    seal(tmp_path / "in", keys.data(), "ChaCha20-Poly1305")
    words = ["--label", ALL, "--manifest", "m", "--input", "in", "--output", "out", "--outputs-manifest", "o",
             "--report", "took.json"]  # fmt: skip
    code, _, said = protected(headway, *words, "--", sys.executable, "-c", COPY)
    assert code == 0, said
    assert {p.name for p in tmp_path.iterdir()} == {"in.sealed", "m", "out.sealed", "o", "took.json", "keys"}
    report = read_report(tmp_path / "took.json")
    assert {(s.service, s.option, s.files, s.bytes) for s in report.services} == {
        ("encryption", "ChaCha20-Poly1305", 1, 10_000),
        ("encryption", "AES-256-GCM", 1, 10_000),
        ("integrity", "SHA-512", 2, 20_000),
        ("authentication", "Ed25519", 2, report.services[0].bytes),
    }
    assert report.exit_code == 0 and report.seconds > 0 and report.remarks == ()
    unseal(tmp_path / "out", keys.data())
    assert (tmp_path / "out").read_bytes() == content[::-1]
    manifest = read_manifest(tmp_path / "o")
    manifest.authenticate("Ed25519", keys)
    assert manifest.check(manifest.files[0], "SHA-512") == 10_000

    # Somebody exchanged the input: the command is not started.
    seal(written(tmp_path / "in", b"another"), keys.data(), "AES-256-GCM", replace=True)
    code, out, said = protected(headway, *words, "--replace", "--", "echo", "started")
    assert code == 125 and "expected 10000 bytes as m says, found 7" in said and "started" not in out
    assert not (tmp_path / "in").exists()


def test_the_exit_code_is_the_commands_and_what_it_wrote_is_sealed_all_the_same(
    tmp_path: Path, keys: Keys, headway
) -> None:
    (tmp_path / "results" / "deep").mkdir(parents=True)
    script = "echo one > results/a; echo two > results/deep/b; ln -s a results/link; echo said; exit 7"
    code, out, said = protected(
        headway,
        "--label",
        "encryption=AES-128-GCM",
        "--output",
        "results",
        "--output",
        "no",
        "sh",
        "-c",
        script,
    )
    assert (code, out) == (7, "said\n")
    assert {p.name for p in (tmp_path / "results").rglob("*")} == {"a.sealed", "deep", "b.sealed", "link"}
    assert "no: the command did not write this output" in said and "link: neither a file nor a folder" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--label", ALL, "--", "./nowhere"], 127, "./nowhere: No such file or directory"),
        (["--label", ALL, "--", "/"], 126, "/: Permission denied"),
        (["--label", "encryption=none", "--", "true"], 125, "--label: encryption: nothing here is called"),
        (["--", "true"], 125, "the job's security levels are not known"),
        (["--label", ALL, "--input", "in", "--", "true"], 125, "in.sealed: expected a sealed file"),
        (["--label", ALL, "--manifest", "m", "--", "true"], 125, "m: cannot be read: No such file"),
    ],
)
def test_commands_that_are_not_started(keys: Keys, headway, words: list[str], code: int, said: str) -> None:
    found, _, text = protected(headway, *words)
    assert found == code and said in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_reaches_the_command_and_so_does_its_death(
    tmp_path: Path, keys: Keys, headway, number: signal.Signals
) -> None:
    caught = "trap 'echo caught >> out; exit 3' USR1; echo begun > out; while :; do sleep 0.1; done"
    process = headway(
        "protect",
        "--keys",
        "keys",
        "--label",
        "encryption=AES-256-GCM",
        "--output",
        "out",
        "sh",
        "-c",
        caught,
    )
    until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text(), "it runs")
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (3 if number == signal.SIGUSR1 else -signal.SIGTERM)
    unseal(tmp_path / "out", keys.data())
    assert (tmp_path / "out").read_text() == ("begun\ncaught\n" if number == signal.SIGUSR1 else "begun\n")


def test_an_input_that_the_command_changed_stays(tmp_path: Path, keys: Keys, headway) -> None:
    seal(written(tmp_path / "in", b"old"), keys.data(), "AES-256-GCM")
    code, _, said = protected(
        headway, "--label", "encryption=AES-256-GCM", "--input", "in", "sh", "-c", "echo new >> in"
    )
    assert code == 0 and "in: the command changed this input; it is left as it is" in said
    assert (tmp_path / "in").read_bytes() == b"oldnew\n" and sealed_name(tmp_path / "in").exists()


def test_protection_that_fails_after_the_command_is_no_success(tmp_path: Path, keys: Keys, headway) -> None:
    # The command itself puts something where its output is to be sealed.
    code, _, said = protected(
        headway,
        "--label",
        "encryption=AES-256-GCM",
        "--output",
        "out",
        "sh",
        "-c",
        "echo a > out; echo b > out.sealed",
    )
    assert code == 125 and "out.sealed: is there already" in said
    assert (tmp_path / "out").read_text() == "a\n" and (tmp_path / "out.sealed").read_text() == "b\n"


def test_commands_make_keys_and_seal(tmp_path: Path, headway) -> None:
    written(tmp_path / "a", b"content")
    for words in (
        ["keys", "keys"],
        ["sign", "--keys", "keys", "--out", "m", "a"],
        ["seal", "--keys", "keys", "a"],
        ["unseal", "--keys", "keys", "a.sealed"],
    ):
        process = headway("security", *words)
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert {p.name for p in tmp_path.iterdir()} == {"a", "m", "keys"}
    assert (tmp_path / "a").read_bytes() == b"content"
