"""Fits over the workers of a dask cluster, with the bits of one machine.

The features of a matrix are split over shards. Workers and client share a folder; the steps of a round are commands
of the program ``quantmf shard`` that any worker may make, and make again after one was lost (docs/shards.md).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from . import _estimators as models
from ._engine import program
from ._errors import OptionError, QuantmfError

__all__ = ["fit"]

_FLAGS = {
    "loss": "loss",
    "updates": "updates",
    "epochs": "epochs",
    "levels": "m",
    "epsilon": "eps",
    "shrinkage": "shrinkage",
    "start": "start",
    "learningRate": "lr",
    "validation": "validation",
    "patience": "patience",
    "seed": "seed",
}


def fit(client: Any, model: Any, X: Any, folder: Any, *, n_shards: int, workers: int = 1) -> Any:
    """Fit a model over the workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    model : NMF or QMF
        Not fitted. A QMF takes all features as one batch, as ``quantmf shard`` does.
    X : array or sparse matrix of shape (n_samples, n_features), or the path of a file
        A file, which all of the cluster need not see, has features in rows, in any format of the command.
        NaN cells are missing.
    folder : path
        That client and workers share, new or of this very fit, which then goes on.
    n_shards : int
        At most one for each 16 features, 64 for a QMF, 16 for an NMF.
    workers : int, default 1
        Threads of a step.

    Returns
    -------
    Another model of the same parameters, fitted: ``components_``, ``embedding_`` and all else that a fit on one machine has.
    """
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    flags = _flags(model)
    if isinstance(X, (str, os.PathLike)):
        matrix = Path(X)
    else:
        matrix, flags = _written(X, folder / "matrix"), [*flags, "-transpose"]
    threads = ["-workers", str(workers)]
    shards = str(folder / "shards")
    if not (folder / "shards" / "plan").exists():
        _run("plan", *flags, *threads, "-shards", str(n_shards), "-o", shards, str(matrix))
    at = "0"
    while at != "over":
        steps = [
            client.submit(
                _run, "step", "-round", at, "-shard", str(i), *threads, shards, pure=False, retries=5
            )
            for i in range(n_shards)
        ]
        client.gather(steps)
        reduced = client.submit(_run, "reduce", "-round", at, *threads, shards, pure=False, retries=5)
        at = reduced.result().strip()
    _run("finish", "-o", str(folder / "model"), shards)
    fitted = type(model).from_bytes((folder / "model").read_bytes())
    return fitted.set_params(**model.get_params())


def _flags(model: Any) -> list[str]:
    """Return the options of a plan."""
    if not isinstance(model, (models.NMF, models.QMF)) or isinstance(model, models.ConsensusNMF):
        raise OptionError(f"quantmf: {type(model).__name__}: shards are of an NMF or a QMF")
    flags = ["-method", model._method, "-k", str(model.n_components)]
    given = {name: of for name, of in model._settings().items() if of is not None and name != "workers"}
    if model._method == "nmf":
        given.setdefault("updates", "newton")
    for name, value in given.items():
        if name not in _FLAGS:
            raise OptionError(f"quantmf: {name}: a fit in shards has no use for it")
        flags += ["-" + _FLAGS[name], str(value)]
    return flags


def _written(X: Any, path: Path) -> Path:
    """Write the matrix for the plan, samples in rows."""
    if hasattr(X, "tocsr"):
        from scipy import sparse

        path = path.with_suffix(".npz")
        sparse.save_npz(path, X.tocsr())
        return path
    path = path.with_suffix(".npy")
    np.save(path, np.asarray(X))
    return path


def _run(*words: str) -> str:
    """Run a command of ``quantmf shard`` and return what it prints."""
    command = [program(), "shard", words[0], "-progress", "none", *words[1:]]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise QuantmfError(ended.stderr.strip() or f"quantmf: {words[0]} ended with code {ended.returncode}")
    return ended.stdout
