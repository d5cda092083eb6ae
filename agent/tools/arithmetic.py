"""Arithmetic for the calculator: an expression is parsed and walked, never executed.

Everything is bounded: the length of the expression, the size of whole numbers, and powers before they are computed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from agent.tools.exceptions import ToolError

Number: TypeAlias = int | float

MAX_LENGTH = 300
MAX_BITS = 4_096


def evaluate(expression: str) -> str:
    """Return the value of `expression` as text; raises `ToolError` with a message for the model."""
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"The expression is longer than {MAX_LENGTH} characters.")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except OverflowError:
        raise ToolError("The result is too large.") from None
    except (SyntaxError, MemoryError, RecursionError):
        raise ToolError("This is not an arithmetic expression.") from None
    except ValueError as error:
        raise ToolError(f"This cannot be computed: {error}.") from None
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return _bounded(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(left), _value(right)))
        case ast.BinOp(op=ast.BitXor()):
            raise ToolError("Write powers with **, not with ^.")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _call(name, [_value(argument) for argument in arguments])
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            raise ToolError(f"{name[:40]!r} is not known here; there are {', '.join([*_CONSTANTS, *_FUNCTIONS])}.")
        case _:
            raise ToolError("Only numbers, + - * / // % **, parentheses and a few functions are understood.")


def _call(name: str, arguments: list[Number]) -> Number:
    try:
        return _bounded(_FUNCTIONS[name](*arguments))
    except TypeError:
        raise ToolError(f"{name} does not take {len(arguments)} argument(s) of this kind.") from None


def _bounded(value: object) -> Number:
    if isinstance(value, complex):
        raise ToolError("The result is not a real number.")
    if isinstance(value, int) and value.bit_length() <= MAX_BITS:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise OverflowError


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and (base.bit_length() - 1) * exponent > MAX_BITS:
        raise OverflowError
    return _bounded(base**exponent)


def _round(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > 30:
        raise ToolError("round takes a whole number of digits between -30 and 30.")
    return round(value, digits) if digits else round(value)


_CONSTANTS = MappingProxyType({"pi": math.pi, "e": math.e, "tau": math.tau})

_OPERATORS: MappingProxyType[type[ast.operator], Callable[[Number, Number], Number]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: _power,
    }
)

_FUNCTIONS: MappingProxyType[str, Callable[..., Number]] = MappingProxyType(
    {
        "abs": abs,
        "round": _round,
        "min": min,
        "max": max,
        "sqrt": math.sqrt,
        "floor": math.floor,
        "ceil": math.ceil,
        "exp": math.exp,
        "log": math.log,
        "log10": math.log10,
        "sin": math.sin,
        "cos": math.cos,
        "tan": math.tan,
    }
)
