"""Errors of the package, with the fields that Go's errors have."""

from __future__ import annotations

import re
from typing import Any


class QuantmfError(Exception):
    """An error of the package."""


class OptionError(QuantmfError, ValueError):
    """An option that is out of range, or of no use to the call: ``option``, ``value``, ``bound``."""

    option: str
    value: str
    bound: str


class DataError(QuantmfError, ValueError):
    """A number that no fit takes: ``row`` is the sample, ``column`` the feature (-1 where none), ``value``, ``problem``."""

    row: int
    column: int
    value: float | None
    problem: str


class ShapeError(QuantmfError, ValueError):
    """An argument of another size or kind than wanted: ``what``, ``got``, ``want``."""

    what: str
    got: str
    want: str


class FormatError(QuantmfError, ValueError):
    """Bytes that are no model's file: ``offset``, ``problem``."""

    offset: int
    problem: str


class ConvergenceError(QuantmfError, ArithmeticError):
    """A transport that did not converge where ``strict`` asks for it."""

    row: int
    iterations: int
    marginal_error: float
    tolerance: float


class QuantmfMemoryError(QuantmfError, MemoryError):
    """A call for which there is no room: set the environment variable ``QUANTMF_MEMORY``, in bytes."""


class EngineError(QuantmfError, RuntimeError):
    """The engine cannot be started, or has ended. The next call starts another."""


_KINDS = {
    "OptionError": OptionError,
    "DataError": DataError,
    "ShapeError": ShapeError,
    "FormatError": FormatError,
    "ConvergenceError": ConvergenceError,
    "MemoryError": QuantmfMemoryError,
}


def snake(name: str) -> str:
    """Return an option's name in Python: learningRate is learning_rate."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda m: "_" + m[1].lower(), name)


def camel(name: str) -> str:
    """Return the name by which the engine knows an option: learning_rate is learningRate."""
    return re.sub(r"_([a-z])", lambda m: m[1].upper(), name)


def made(of: dict[str, Any]) -> QuantmfError:
    """Return the error that the engine describes.

    The engine has features in rows, and estimators samples: the places of a DataError are exchanged by them.
    """
    message = of["message"]
    if "option" in of:
        message = message.replace(of["option"], snake(of["option"]), 1)
        of = {**of, "option": snake(of["option"])}
    error = _KINDS.get(of["kind"], QuantmfError)(message)
    for name, value in of.items():
        if name not in ("kind", "message"):
            setattr(error, snake(name), value)
    return error
