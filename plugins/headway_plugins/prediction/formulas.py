"""How an application's cost grows with its parameters, as its user writes it: ``N/P*log(N) + P``.

B. J. Lafreniere, A. C. Sodan: ScoPred - Scalable User-Directed Performance Prediction Using Complexity
Modeling and Historical Data. JSSPP 2005, section 3. A formula is a sum of terms; each gets a coefficient of
its own, and there is a constant beside them. A text is parsed to Python's syntax tree, of which only what is
listed here may occur, and evaluated by a walk over that tree: nothing of it is ever run as a program.

Decisions on what the paper leaves open:

- The sum is split at its outermost ``+`` and ``-`` alone: parentheses group, and no product is distributed.
- A term's constant factors, its sign and the base of a logarithm that is a factor are its coefficient's
  affair: ``2*M^3`` and ``M^3`` are the same term, and so are ``log(N)`` and ``log2(N)``.
- Terms that are the same then are one. So are terms whose quotient is constant at all of a few fixed points,
  such as ``2^(2*N)`` and ``4^N``. Terms that are alike on some runs only stay two: that these runs do not
  tell them apart is the fit's affair.
- Terms without a parameter belong to the constant.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError

Array = NDArray[np.float64]

#: What a formula may call, and with how many arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int | None]] = {
    "log": (np.log, 1, 1),
    "log2": (np.log2, 1, 1),
    "log10": (np.log10, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "exp": (np.exp, 1, 1),
    "ceil": (np.ceil, 1, 1),
    "floor": (np.floor, 1, 1),
    "min": (np.minimum, 2, None),
    "max": (np.maximum, 2, None),
}  # fmt: skip
#: Characters of a formula, and parts of it within each other.
LONGEST, DEEPEST = 500, 40
#: Terms of a formula.
MOST_TERMS = 50

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
#: What the nodes of other kinds are called in messages.
_NAMES: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute",
    ast.IfExp: "a condition",
    ast.Compare: "a comparison",
    ast.Subscript: "an index",
    ast.Lambda: "a function",
    ast.BoolOp: "a condition",
    ast.Tuple: "a list",
    ast.List: "a list",
    ast.Constant: "a value that is no number",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class FormulaError(UserError):
    """A formula that cannot be read; ``column`` counts from 1."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        super().__init__(f"formula {text!r}, column {column}: {problem}")
        self.column = column


@dataclass(frozen=True)
class Term:
    """A summand without its constant factors: what a coefficient is fitted to."""

    #: As it is shown; terms of the same text are the same.
    text: str
    #: As it was written, without its sign.
    written: ast.expr

    def __call__(self, parameters: Mapping[str, Array | float]) -> Array:
        """Its value, as it was written, at each of the points; not a number or infinite where it has none.

        ``parameters``: arrays of one shape, or numbers, by name.
        """
        with np.errstate(all="ignore"):
            return np.asarray(_value(self.written, parameters), dtype=float)


@dataclass(frozen=True)
class Formula:
    """A sum of terms, each of which gets a coefficient, and a constant."""

    text: str
    terms: tuple[Term, ...]
    #: The parameters that it names, sorted.
    parameters: tuple[str, ...]
    #: A term without parameters stands in it.
    has_constant: bool


@lru_cache(maxsize=256)
def parse(text: str) -> Formula:
    """What a formula says. :class:`FormulaError` names the column of what it may not say."""
    if len(text) > LONGEST:
        raise FormulaError(text[:40] + "...", LONGEST + 1, f"expected at most {LONGEST} characters")
    source, columns = _python(text)
    if not source.strip():
        raise FormulaError(text, 1, "expected a sum of terms such as N/P*log(N), found nothing")
    try:
        # In parentheses, so that blanks at the beginning are no indentation.
        tree = ast.parse(f"({source})", mode="eval").body
    except SyntaxError as error:
        at = min(max((error.offset or 2) - 2, 0), len(columns) - 1)
        raise FormulaError(text, columns[at], f"cannot be read: {str(error.msg).split('.')[0]}") from error
    except (ValueError, MemoryError, RecursionError) as error:
        raise FormulaError(text, 1, f"cannot be read: {error or type(error).__name__}") from error
    # Where the whole stands in parentheses it is one term.
    grouped = tree.col_offset != 1 + len(source) - len(source.lstrip())
    summands = list(_summands(tree, grouped))
    if len(summands) > MOST_TERMS:
        raise FormulaError(text, 1, f"expected at most {MOST_TERMS} terms, found {len(summands)}")
    for node in summands:
        _check(node, text, columns)
    names = tuple(sorted(set().union(*map(_names, summands))))
    terms: list[Term] = []
    for node in summands:
        if _names(node):
            term = Term(_canonical(node), node)
            if not any(_same(term, other, names) for other in terms):
                terms.append(term)
    if not terms:
        raise FormulaError(text, 1, "expected a term that names a parameter, found none")
    return Formula(text, tuple(terms), names, not all(map(_names, summands)))


def _check(node: ast.AST, text: str, columns: Sequence[int], depth: int = 0) -> None:
    """Raise :class:`FormulaError` for what may not stand in a formula, here and further in."""
    problem = _problem(node) if depth <= DEEPEST else f"expected at most {DEEPEST} parts within each other"
    if problem:
        # The text is ASCII, so bytes are characters.
        at = min(max(getattr(node, "col_offset", 1) - 1, 0), len(columns) - 1)
        raise FormulaError(text, columns[at], problem)
    for inner in _inner(node):
        _check(inner, text, columns, depth + 1)


def _python(text: str) -> tuple[str, list[int]]:
    """The text with ``**`` for ``^``, and of each of its characters the column that it had."""
    source, columns = [], []
    for at, character in enumerate(text, 1):
        if not character.isascii() or (not character.isprintable() and character not in " \t"):
            raise FormulaError(text, at, f"expected letters, digits and + - * / ^ ( ) ,, found {character!r}")
        for written in "**" if character == "^" else character:
            source.append(written)
            columns.append(at)
    return "".join(source), columns


def _summands(node: ast.expr, grouped: bool) -> Iterator[ast.expr]:
    """The parts between the outermost plus and minus signs; ``grouped``: it stands in parentheses."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd) and not grouped:
        yield node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not grouped:
        # A parenthesis belongs to what is around it, not to what it holds.
        yield from _summands(node.left, node.left.col_offset != node.col_offset)
        yield from _summands(node.right, node.right.end_col_offset != node.end_col_offset)
    else:
        yield node


def _problem(node: ast.AST) -> str:
    """What is wrong with this node itself; "" if nothing is."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        try:
            return "" if math.isfinite(float(node.value)) else "the number is too large"
        except OverflowError:
            return "the number is too large"
    if isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            return f"{node.id} is a function: expected ( behind it"
        return "" if _NAME.match(node.id) else "expected a name of at most 64 characters"
    if isinstance(node, ast.BinOp):
        return "" if type(node.op) in _OPERATORS else "expected one of the operators + - * / ^"
    if isinstance(node, ast.UnaryOp):
        return "" if isinstance(node.op, ast.USub | ast.UAdd) else "expected one of the operators + - * / ^"
    if isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else None
        if called not in FUNCTIONS:
            found = repr(called) if called else "something else"
            return f"expected one of the functions {', '.join(FUNCTIONS)}, found {found}"
        _, least, most = FUNCTIONS[called]
        count = len(node.args)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            return f"{called} takes plain arguments"
        if count < least or (most is not None and count > most):
            takes = "1 argument" if most == 1 else "2 arguments or more"
            return f"{called} takes {takes}, found {count}"
        return ""
    found = _NAMES.get(type(node), "something else")
    return f"expected numbers, parameters, functions and + - * / ^, found {found}"


def _inner(node: ast.AST) -> Sequence[ast.expr]:
    """The parts of an allowed node that are expressions."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right)
    if isinstance(node, ast.UnaryOp):
        return (node.operand,)
    return node.args if isinstance(node, ast.Call) else ()


def _names(node: ast.expr) -> set[str]:
    """The parameters in it."""
    if isinstance(node, ast.Name):
        return {node.id}
    return set().union(*map(_names, _inner(node)))


def _value(node: ast.expr, parameters: Mapping[str, Array | float]) -> Any:
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return np.asarray(parameters[node.id], dtype=float)
    parts = [_value(part, parameters) for part in _inner(node)]
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](*parts)
    if isinstance(node, ast.UnaryOp):
        return -parts[0] if isinstance(node.op, ast.USub) else parts[0]
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    function = FUNCTIONS[node.func.id][0]
    return reduce(function, parts) if len(parts) > 1 else function(*parts)


# ------------------------------------------------------------ which terms are the same


def _canonical(node: ast.expr) -> str:
    """A term without constant factors, sign and bases of logarithms, as a text."""
    powers: dict[str, float] = {}
    _factors(node, 1.0, powers)
    above = [_raised(base, power) for base, power in powers.items() if power > 0]
    below = [_raised(base, -power) for base, power in powers.items() if power < 0]
    text = "*".join(above) or "1"
    if below:
        text += "/" + (below[0] if len(below) == 1 else f"({'*'.join(below)})")
    return text


def _factors(node: ast.expr, power: float, powers: dict[str, float]) -> None:
    """Add the factors of ``node``, to this power, to the powers of the bases."""
    if not _names(node):
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        _factors(node.left, power, powers)
        _factors(node.right, power if isinstance(node.op, ast.Mult) else -power, powers)
    elif isinstance(node, ast.UnaryOp):
        _factors(node.operand, power, powers)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _names(node.right):
        with np.errstate(all="ignore"):
            exponent = float(_value(node.right, {}))
        if exponent.is_integer():
            _factors(node.left, power * exponent, powers)
        elif math.isfinite(exponent):
            _multiply(powers, _text(node.left), power * exponent)
        else:
            _multiply(powers, _text(node), power)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sqrt":
        _multiply(powers, _text(node.args[0]), power / 2)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("log"):
        _multiply(powers, f"log({_text(node.args[0])})", power)
    else:
        _multiply(powers, _text(node), power)


def _multiply(powers: dict[str, float], base: str, power: float) -> None:
    powers[base] = powers.get(base, 0.0) + power


def _text(node: ast.expr) -> str:
    return ast.unparse(node).replace(" ** ", "^").replace("**", "^")


def _raised(base: str, power: float) -> str:
    if power == 1 and ("+" not in base and " " not in base):
        return base
    simple = _NAME.match(base) or base.startswith("log(")
    shown = base if simple else f"({base})"
    if power == 0.5:
        return f"sqrt({base})"
    return shown if power == 1 else f"{shown}^{power:g}"


def _same(one: Term, other: Term, names: tuple[str, ...]) -> bool:
    """Whether two terms differ by a constant factor at most."""
    if one.text == other.text:
        return True
    # Fixed points without a pattern, from 1 to 10: multiples of irrational numbers (as good as).
    points = {
        name: 1.0 + 9.0 * np.modf(np.arange(1, 9) * math.sqrt(2.3 + at) + math.pi * at)[0]
        for at, name in enumerate(names)
    }
    with np.errstate(all="ignore"):
        quotient = np.ravel(one(points) / other(points))
    return bool(np.isfinite(quotient).all()) and bool(
        np.abs(quotient - quotient[0]).max() <= 1e-9 * abs(quotient[0])
    )
