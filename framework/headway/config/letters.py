"""``letters:`` how letters to users are delivered."""

from __future__ import annotations

import pydantic

from headway.config.section import Section
from headway.inputs.placeholders import check_command


class LettersConfig(Section):
    """Letters to users, by the site's own mail command."""

    command: list[str] = pydantic.Field(
        default_factory=list,
        description="command of the site that mails a letter, whose text it gets on standard input: "
        "a list of words with {user} and mostly {subject}; default: letters are only logged",
    )
    timeout: float = pydantic.Field(
        default=30.0,
        gt=0,
        le=3600,
        description="seconds after which the command is ended; the letter is lost",
    )
    hourly: int = pydantic.Field(default=20, ge=1, le=10_000, description="letters an hour to one user")
    hourly_in_all: int = pydantic.Field(
        default=200, ge=1, le=100_000, description="letters an hour to all users together"
    )

    @pydantic.model_validator(mode="after")
    def _command_makes_sense(self) -> LettersConfig:
        check_command("command", self.command, must=("user",), may=("subject",))
        if self.command and "/" in self.command[0] and not self.command[0].startswith("/"):
            raise ValueError(
                f"command: expected a program by its name or its whole path, found {self.command[0]!r}"
            )
        return self
