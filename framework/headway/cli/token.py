"""``headway token``: the tokens by which programs and browsers are known to ``headway serve``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli import common
from headway.cli.as_json import json_option, say_json
from headway.cli.asking import DURATION
from headway.cli.common import examples, site_config_option
from headway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headway.serve.tokens import Token, Tokens

_LONGEST_NAME = 256


@click.group("token")
def command() -> None:
    """Make, list, revoke and prune tokens for `headway serve`."""


@command.command("create", epilog=examples(
    "headway token create --user alice --for 90d",
    "headway token create --user monitor --scope read --name prometheus --for 365d",
))  # fmt: skip
@site_config_option
@click.option("--user", required=True, help="The user that it stands for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(["read", "user", "operator"]),
              help="What it allows: read, act on own jobs, act as an operator. Repeatable. "
                   "Default: read.")  # fmt: skip
@click.option("--for", "seconds", type=DURATION, default="30d", show_default=True, help="How long it holds.")
@click.option("--name", default="", help="What it is for: a text of yours.")
@json_option("headway.cli.printed_tokens:NewToken", "Print the token as JSON.")
def create(
    config_path: Path | None, user: str, scopes: tuple[str, ...], seconds: float, name: str, as_json: bool
) -> None:
    """Make a token and print it, once: only its hash is kept."""
    for what, text in (("--user", user), ("--name", name)):
        if len(text) > _LONGEST_NAME or not text.isprintable() or (what == "--user" and not text.strip()):
            raise UserError(f"{what}: expected a name of at most {_LONGEST_NAME} letters, found {text!r}")
    word = _tokens(config_path).create(
        user, tuple(dict.fromkeys(scopes)) or ("read",), time.time(), seconds, name
    )
    if as_json:
        from headway.cli.printed_tokens import NewToken

        say_json(NewToken(word))
        return
    click.echo(word)
    common.say("This is the only time that it is shown.", common.messages())


@command.command("list")
@site_config_option
@json_option("headway.cli.printed_tokens:TokenList", "Print the tokens as JSON.")
def list_(config_path: Path | None, as_json: bool) -> None:
    """List tokens: id, user, what it allows, its end. The tokens themselves are not kept."""
    found = _tokens(config_path).all()
    if as_json:
        from headway.cli.printed_tokens import TokenList

        say_json(TokenList(found))
        return
    _say_all(found)
    if not found:
        common.say("no tokens")


@command.command("revoke")
@site_config_option
@click.argument("token_id", metavar="ID")
@json_option("headway.serve.tokens:Token", "Print the revoked token's record as JSON.")
def revoke(config_path: Path | None, token_id: str, as_json: bool) -> None:
    """Revoke a token: `headway serve` refuses it from its next request on."""
    gone = _tokens(config_path).revoke(token_id, time.time())
    if as_json:
        say_json(gone)
        return
    common.say(f"token {gone.id} of user {gone.user} is revoked")


@command.command("prune", epilog=examples("headway token prune", "headway token prune --over 1h"))
@site_config_option
@click.option("--over", "seconds", type=DURATION, default="30d", show_default=True,
              help="Those that ended, or were revoked, so long ago.")  # fmt: skip
@json_option("headway.cli.printed_tokens:TokenList", "Print the records of the removed tokens as JSON.")
def prune(config_path: Path | None, seconds: float, as_json: bool) -> None:
    """Remove the records of tokens that are over. `headway token create` does so after 30 days."""
    gone = _tokens(config_path).prune(time.time(), seconds)
    if as_json:
        from headway.cli.printed_tokens import TokenList

        say_json(TokenList(gone))
        return
    _say_all(gone)
    common.say(
        f"{len(gone)} token{'' if len(gone) == 1 else 's'} removed" if gone else "no tokens are removed"
    )


def _say_all(tokens: Iterable[Token]) -> None:
    now = time.time()
    for one in tokens:
        ends = "revoked" if one.revoked is not None else "over since" if now >= one.expires else "until"
        name = f"  {one.name}" if one.name else ""
        end = f"{ends} {common.wall_clock(one.over)}"
        common.say(f"{one.id}  {one.user}  {','.join(one.scopes)}  {end}{name}")


def _tokens(config_path: Path | None) -> Tokens:
    from headway.config import load_config
    from headway.serve.tokens import Tokens

    config = load_config(common.named_config(config_path), None)
    path = config.tokens_path()
    if path is None:
        raise UserError(
            f"{config.source}: serve.tokens: expected a path, because the journal is no file; found none"
        )
    return Tokens(path)
