"""``headway protect``, and what prepares for it: keys, manifests, sealed files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import examples, messages, say
from headway.inputs.extras import need_security
from headway_plugins.security.measured import LEVELS

if TYPE_CHECKING:
    from headway.adapter.user_side import UserSide
    from headway_plugins.security.protection.wrapper import Ended

#: Of a job's environment: its id and its queue, whichever batch system it has.
_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
_QUEUE = ("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE")
_FILE = click.Path(path_type=Path, dir_okay=False)
keys_option = click.option(
    "--keys", "folder", type=click.Path(path_type=Path, file_okay=False), show_default="~/.headway/keys",
    help="Folder with your key files.",
)  # fmt: skip


def _folder(folder: Path | None) -> Path:
    from headway_plugins.security.protection.keys import default_folder

    return default_folder() if folder is None else folder


@click.command(
    "protect",
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "headway protect --label encryption=AES-256-GCM --input in.dat --output out.dat -- ./model in.dat",
        "headway protect --manifest job.manifest --output results --report took.json -- python model.py",
    ),
)
@click.option(
    "--label",
    help="The levels, such as encryption=AES-256-GCM,integrity=SHA-512. Default: the variable "
    "HEADWAY_PROTECT.",
)
@click.option(
    "--system",
    help="Ask this batch system (slurm, pbs or lsf) for the label; report the cost of the protection to "
    "Slurm.",
)
@keys_option
@click.option("--manifest", type=_FILE, help="Signed list of the files that must be unchanged.")
@click.option(
    "--input",
    "inputs",
    type=_FILE,
    multiple=True,
    help="A file that exists as FILE.sealed and is decrypted for the command. Repeatable.",
)
@click.option(
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A file, or a folder with all its files, that is sealed after the command. Repeatable.",
)
@click.option("--outputs-manifest", type=_FILE, help="Write a signed list of the outputs to this file.")
@click.option(
    "--report", type=_FILE, help="Write the cost of the protection to this file: seconds and bytes."
)
@click.option("--replace", is_flag=True, help="Overwrite existing sealed outputs and their manifest.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def protect(
    label: str | None,
    system: str | None,
    folder: Path | None,
    manifest: Path | None,
    inputs: tuple[Path, ...],
    outputs: tuple[Path, ...],
    outputs_manifest: Path | None,
    report: Path | None,
    replace: bool,
    argv: tuple[str, ...],
) -> None:
    """Run a command with its security levels carried out: signature, digests, encryption.

    Its inputs are verified and decrypted before, its outputs are listed and sealed after it. Signals and the
    exit code are passed through; 125 says that the protection failed, 126 and 127 that the command could not
    be started. No daemon is needed on the node, only the package cryptography (extra `security`).
    """
    from headway.adapter.user_side import load_user_side
    from headway.errors import HeadwayError
    from headway_plugins.security.protection import wrapper
    from headway_plugins.security.protection.keys import Keys
    from headway_plugins.security.protection.report import told, write_report

    def tell(text: str) -> None:
        # Standard output is the command's.
        say(f"protect: {text}", messages())

    def finished(ended: Ended) -> None:
        tell(told(ended.report.services) or "no protection was asked for")
        if report is not None:
            try:
                write_report(report, ended.report)
            except HeadwayError as error:
                ended.trouble = ended.trouble or error
        if side is not None and side.hears:
            _note(side, ended, tell)

    side = None
    try:
        need_security("headway protect")
        side = load_user_side(system, _queue(os.environ)) if system is not None else None
        plan = wrapper.Plan(
            argv, _label(label, side, os.environ), Keys(_folder(folder)), manifest, inputs, outputs,
            outputs_manifest, replace, _first_of(os.environ, _JOB),
        )  # fmt: skip
        ended = wrapper.run(plan, tell, finished)
    except wrapper.Stopped as stopped:
        wrapper.leave(-stopped.number)
    except HeadwayError as error:
        # The code of a command that was not started must differ from the code of a command that was.
        error.exit_code = error.exit_code if isinstance(error, wrapper.NotStarted) else wrapper.FAILED
        raise
    if ended.trouble is not None:
        tell(str(ended.trouble))
    wrapper.leave(ended.exit_code)


def _note(side: UserSide, ended: Ended, tell: Callable[[str], None]) -> None:
    """Tell the batch system what protection took."""
    from headway.errors import HeadwayError
    from headway_plugins.security.protection.label import TOOK, took_text

    if took := took_text(ended.report.services):
        try:
            side.note(os.environ, TOOK, took)
        except HeadwayError as error:
            tell(f"the cost of the protection was not reported to the batch system: {error}")


def _queue(environment: Mapping[str, str]) -> dict[str, str]:
    """The job's queue, so that the batch system need not be asked for its default queue."""
    queue = _first_of(environment, _QUEUE)
    return {"queue": queue} if queue else {}


def _first_of(environment: Mapping[str, str], names: Iterable[str]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")


def _label(given: str | None, side: UserSide | None, environment: Mapping[str, str]) -> dict[str, str]:
    from headway.errors import UserError
    from headway_plugins.security.protection.label import NOTE, VARIABLE, parse_label

    if given is not None:
        return parse_label(given, "--label")
    if VARIABLE in environment:
        return parse_label(environment[VARIABLE], VARIABLE)
    if side is not None and NOTE in (notes := side.notes(environment)):
        return parse_label(notes[NOTE], "the note of headway at this job")
    raise UserError(
        f"the job's security levels are not known: expected --label, the variable {VARIABLE}, or with "
        "--system a note of headway at the job, such as encryption=AES-256-GCM,integrity=SHA-512"
    )


@click.command("keys", epilog=examples("headway security keys ~/.headway/keys"))
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@printed_json
def keys_command(folder: Path | None) -> None:
    """Make the keys that are not in FOLDER yet (default ~/.headway/keys), readable for you alone.

    Without data.key nothing that is sealed with it can be read: keep a copy in a safe place.
    """
    from headway_plugins.security.protection.keys import make_keys

    where = _folder(folder)
    made = make_keys(where)
    say(
        f"made in {where}: {', '.join(path.name for path in made)}"
        if made
        else f"all keys are in {where} already"
    )


@click.command("sign", epilog=examples("headway security sign --out job.manifest job.sh model in.dat"))
@keys_option
@click.option("--out", type=_FILE, required=True, help="The manifest.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@printed_json
def sign_command(folder: Path | None, out: Path, files: tuple[Path, ...]) -> None:
    """List FILES with their digests in a manifest, and sign that with each of your keys.

    It is for `headway protect --manifest`: the levels are chosen after the job was submitted, so every digest
    and every signature is there. Sign before you seal.
    """
    from headway_plugins.security.protection.keys import Keys
    from headway_plugins.security.protection.manifest import list_files, write_manifest

    need_security("headway security sign")
    keys = Keys(_folder(folder))
    options: Sequence[str] = [option for option in LEVELS["authentication"] if keys.has_signer(option)]
    if not options:
        keys.signer("Ed25519")
    write_manifest(out, list_files(files, out.parent), keys, options)
    say(f"written: {out}, signed by {', '.join(options)}")


@click.command("seal", epilog=examples("headway security seal in.dat"))
@keys_option
@click.option(
    "--cipher", type=click.Choice(list(LEVELS["encryption"])), default="AES-256-GCM", show_default=True
)
@click.option("--replace", is_flag=True, help="Overwrite existing sealed files.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@printed_json
def seal_command(folder: Path | None, cipher: str, replace: bool, files: tuple[Path, ...]) -> None:
    """Encrypt each of FILES to FILE.sealed; the file itself goes once what was written was read back."""
    from headway_plugins.security.protection.keys import Keys
    from headway_plugins.security.protection.sealed import seal, sealed_name

    need_security("headway security seal")
    secret = Keys(_folder(folder)).data()
    for path in files:
        seal(path, secret, cipher, replace=replace)
        say(f"sealed: {sealed_name(path)}")


@click.command("unseal", epilog=examples("headway security unseal out.dat"))
@keys_option
@click.option("--keep", is_flag=True, help="Keep the sealed files.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@printed_json
def unseal_command(folder: Path | None, keep: bool, files: tuple[Path, ...]) -> None:
    """Decrypt FILE.sealed to FILE for each of FILES, which are named with or without `.sealed`."""
    from headway_plugins.security.protection.keys import Keys
    from headway_plugins.security.protection.sealed import SUFFIX, unseal

    need_security("headway security unseal")
    secret = Keys(_folder(folder)).data()
    for path in files:
        plain = path.with_name(path.name.removesuffix(SUFFIX))
        unseal(plain, secret, keep=keep)
        say(f"written: {plain}")
