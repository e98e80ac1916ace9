"""Matrix factorisation for features whose scales do not fit each other, and differentiable ranks and sorting.

The work is done by a program in Go, which this package carries and talks to through pipes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOMES = {
    "NMF": "_estimators",
    "ConsensusNMF": "_estimators",
    "QMF": "_estimators",
    "QMFQ": "_estimators",
    "BQMF": "_estimators",
    "BQMFImputer": "_estimators",
    "ConvergenceWarning": "_estimators",
    "soft_rank": "_operators",
    "soft_sort": "_operators",
    "soft_quantile": "_operators",
    "QuantmfError": "_errors",
    "OptionError": "_errors",
    "DataError": "_errors",
    "ShapeError": "_errors",
    "FormatError": "_errors",
    "ConvergenceError": "_errors",
    "QuantmfMemoryError": "_errors",
    "EngineError": "_errors",
}

_MODULES = ("distributed", "pl", "tl")

__all__ = [*_HOMES, *_MODULES]

if TYPE_CHECKING:
    from . import distributed as distributed
    from . import pl as pl
    from . import tl as tl
    from ._errors import *  # noqa: F403
    from ._estimators import *  # noqa: F403
    from ._operators import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import what is asked for: scikit-learn, where it is installed, takes a second."""
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
