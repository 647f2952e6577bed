"""Numbers on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from headway.cli.numbers import FiniteRange
from headway_plugins.security.commands import measure_command


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "0", "-3", "a"])
def test_what_is_no_finite_number_above_zero_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        FiniteRange(min=0, min_open=True).convert(text, None, None)


def test_numbers_are_taken() -> None:
    assert FiniteRange(0, 2).convert("1.5", None, None) == 1.5


def test_a_measurement_of_no_known_length_is_not_begun() -> None:
    done = CliRunner().invoke(measure_command, ["--seconds", "nan"])
    assert done.exit_code == 2 and "expected a finite number, found 'nan'" in done.output
