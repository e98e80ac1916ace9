"""Factorisations of an AnnData object, as scanpy's tools write theirs: cells are samples, genes are features.

Each function writes, under ``key_added`` (its own name by default):

=====================  ==============================================================================
``obsm["X_" + key]``   coordinates of cells, n_obs × k; of ``bqmf`` those whose distances mean something
``varm[key]``          components, n_vars × k; 0 for genes that ``mask_var`` leaves out
``uns[key]``           ``params``; ``history``, the mean divergence before the first epoch and after each;
                       ``model``, the bytes of the model's file, which ``tl.model`` reads; ``genes``, whether
                       each was fitted; of ``consensus_nmf`` also ``stability`` and ``by_k``
=====================  ==============================================================================

Nothing is densified: sparse matrices go to the engine as they are, and those of a backed file by blocks of cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _estimators as models
from ._engine import call
from ._errors import DataError, OptionError, QuantmfError

__all__ = ["bqmf", "consensus_nmf", "model", "nmf", "qmf"]

_BLOCK = 1 << 23  # numbers of a block of cells that is read from a file, were it dense


def nmf(
    adata: Any,
    n_components: int = 10,
    *,
    layer: str | None = None,
    mask_var: Any = "highly_variable",
    beta_loss: str | float = "kullback-leibler",
    key_added: str = "nmf",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Factorise counts, or other values that are not negative, by NMF: X ≈ W H.

    Parameters
    ----------
    adata : AnnData
        In memory or backed. NaN cells are missing.
    n_components : int, default 10
    layer : str, optional
        A layer in place of ``adata.X``.
    mask_var : str or boolean array of shape (n_vars,), default 'highly_variable'
        Which genes are fitted: a column of ``adata.var``, or None for all. All too, where ``adata.var`` has no
        'highly_variable'.
    beta_loss, **options
        Parameters of ``quantmf.NMF``: ``max_iter``, ``random_state``, ``solver``, ``workers``, ``progress``, ...
    key_added : str, default 'nmf'
    copy : bool, default False
        Return a copy with the results in place of writing them into ``adata``.

    Returns
    -------
    None, or the copy: ``obsm["X_nmf"]``, ``varm["nmf"]``, ``uns["nmf"]``.
    """
    fitted = models.NMF(n_components, beta_loss=beta_loss, **options)
    return _fitted(adata, fitted, layer, mask_var, key_added, copy)


def qmf(
    adata: Any,
    n_components: int = 10,
    *,
    layer: str | None = None,
    mask_var: Any = "highly_variable",
    key_added: str = "qmf",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Factorise with one increasing map a gene, X ≈ T(W H): values need no transformation before.

    Parameters and results are those of ``nmf``; ``options`` are parameters of ``quantmf.QMF``.
    """
    fitted = models.QMF(n_components, **options)
    return _fitted(adata, fitted, layer, mask_var, key_added, copy)


def bqmf(
    adata: Any,
    n_components: int | None = None,
    *,
    layer: str | None = None,
    mask_var: Any = "highly_variable",
    key_added: str = "bqmf",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Embed cells by a BQMF: ``scanpy.pp.neighbors(adata, use_rep="X_bqmf")`` goes on from it.

    Parameters are those of ``nmf``; ``n_components`` None takes as many as the data bear, at most 50, and
    ``options`` are parameters of ``quantmf.BQMF``. Values of cells must be comparable: take normalised ones. Of a
    BQMF ``obsm`` has ``BQMF.distances()``, and columns of ``varm`` are components, so that the two may differ in
    their number.
    """
    return _fitted(adata, models.BQMF(n_components, **options), layer, mask_var, key_added, copy)


def consensus_nmf(
    adata: Any,
    n_components: int | Iterable[int] = 10,
    *,
    n_seeds: int = 20,
    scale: bool = True,
    layer: str | None = None,
    mask_var: Any = "highly_variable",
    beta_loss: str | float = "frobenius",
    key_added: str = "consensus_nmf",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Find the programs on which NMFs from many seeds agree, as cNMF does.

    Parameters
    ----------
    n_components : int or several, default 10
        Of several each is tried; ``obsm`` and ``varm`` are those of the last.
    n_seeds : int, default 20
        Fits for each number of components.
    scale : bool, default True
        Divide each gene by its standard deviation, as cNMF does. Components are of the divided values.
    beta_loss, **options
        Parameters of ``quantmf.ConsensusNMF``.
    adata, layer, mask_var, key_added, copy : see ``nmf``

    Returns
    -------
    None, or the copy: as of ``nmf``, and in ``uns[key]``

    - ``stability``: of each component of the last fit, 1 where all seeds have it;
    - ``by_k``: a data frame with a row for each number of components: ``stability`` (below 0.5 few components
      come back), ``least`` of a component, ``loss`` of the consensus and ``best_fit``, that of the best seed.
    """
    ks = [n_components] if isinstance(n_components, (int, np.integer)) else [int(k) for k in n_components]
    if not ks:
        raise OptionError("quantmf: n_components: at least one number is needed")
    import pandas

    adata = adata.copy() if copy else adata
    used = _mask(adata, mask_var)
    cells = _cells(adata, layer, used)
    if scale:
        cells = _scaled(cells)
    rows = []
    for k in ks:
        fitted = models.ConsensusNMF(k, n_seeds=n_seeds, beta_loss=beta_loss, **options)
        _named(adata, used, lambda: fitted.fit(cells))  # noqa: B023
        rows.append(
            {
                "n_components": k,
                "stability": fitted.silhouette_,
                "least": float(fitted.stability_.min()),
                "loss": float(fitted.history_[fitted.n_iter_]),
                "best_fit": float(fitted.losses_.min()),
            }
        )
    _write(adata, fitted, used, key_added, layer, mask_var, scale=scale)
    by_k = pandas.DataFrame(rows)
    by_k.index = by_k.index.astype(str)  # as h5ad keeps it
    adata.uns[key_added] |= {"stability": fitted.stability_, "by_k": by_k}
    return adata if copy else None


def model(adata: Any, key: str) -> Any:
    """Return the estimator whose results are under a key: for ``reconstruct``, ``interval``, ``curve``, ``save``.

    Its samples are the cells, its features the genes that were fitted.
    """
    of = adata.uns[key]
    file = np.ascontiguousarray(of["model"], np.uint8).tobytes()
    kinds = {kind._method: kind for kind in (models.NMF, models.QMF, models.QMFQ, models.BQMF)}
    fitted = kinds[call("open", model=file)["method"]].from_bytes(file)
    fitted.feature_names_in_ = np.asarray(adata.var_names[np.asarray(of["genes"], bool)], dtype=object)
    return fitted


def _fitted(adata: Any, fitted: Any, layer: Any, mask_var: Any, key: str, copy: bool) -> Any:
    """Fit a model and write its results."""
    adata = adata.copy() if copy else adata
    used = _mask(adata, mask_var)
    cells = _cells(adata, layer, used)
    _named(adata, used, lambda: fitted.fit(cells))
    _write(adata, fitted, used, key, layer, mask_var)
    return adata if copy else None


def _write(
    adata: Any, fitted: Any, used: np.ndarray, key: str, layer: Any, mask_var: Any, **more: Any
) -> None:
    components = np.zeros((adata.n_vars, fitted.n_components_))
    components[used] = fitted.components_.T
    adata.obsm["X_" + key] = fitted.distances() if isinstance(fitted, models.BQMF) else fitted.embedding_
    adata.varm[key] = components
    given = {"layer": layer, "mask_var": mask_var if isinstance(mask_var, str) else None, **more}
    given |= {name: value for name, value in fitted.get_params().items() if name != "progress"}
    plain = {name: v for name, v in given.items() if isinstance(v, (bool, int, float, str, np.number))}
    adata.uns[key] = {
        "params": plain,  # what is None has no place in an h5ad
        "history": fitted.history_,
        "model": np.frombuffer(fitted.model_, np.uint8),
        "genes": used,
    }


def _mask(adata: Any, mask_var: Any) -> np.ndarray:
    """Return which genes are fitted."""
    if mask_var is None or (isinstance(mask_var, str) and mask_var == "highly_variable"):
        if mask_var is None or mask_var not in adata.var:
            return np.ones(adata.n_vars, bool)
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise OptionError(f"quantmf: mask_var {mask_var!r}: adata.var has no such column")
        mask_var = adata.var[mask_var]
    used = np.asarray(mask_var)
    if used.dtype != bool or used.shape != (adata.n_vars,):
        raise OptionError(f"quantmf: mask_var: must be of {adata.n_vars} truth values")
    if not used.any():
        raise OptionError("quantmf: mask_var: no gene is left")
    return used


def _cells(adata: Any, layer: str | None, used: np.ndarray) -> Any:
    """Return the matrix of cells and the genes that are used, sparse where it is kept so."""
    if layer is None and adata.isbacked:
        return _read(adata, used)
    cells = adata.X if layer is None else adata.layers[layer]
    if cells is None:
        raise QuantmfError("quantmf: adata.X is None: name a layer")
    if hasattr(cells, "tocsc"):
        cells = cells.tocsc()
    return cells if used.all() else cells[:, used]


def _read(adata: Any, used: np.ndarray) -> Any:
    """Read the used genes of a backed matrix by blocks of cells."""
    some = max(1, min(adata.n_obs, _BLOCK // max(adata.n_vars, 1)))
    blocks, dense = [], None
    for block, start, end in adata.chunked_X(some):
        if hasattr(block, "tocsc"):
            blocks.append(block[:, used].tocsc())
            continue
        if dense is None:
            dense = np.empty((adata.n_obs, int(used.sum())), block.dtype)
        dense[start:end] = block[:, used]
    if dense is not None:
        return dense
    from scipy import sparse

    return sparse.vstack(blocks, format="csc")


def _scaled(cells: Any) -> Any:
    """Return the matrix with each gene divided by its standard deviation; one of 0 stays."""
    n = cells.shape[0]
    if hasattr(cells, "tocsc"):
        mean = np.asarray(cells.mean(0)).ravel()
        squares = np.asarray(cells.multiply(cells).sum(0)).ravel()
        squares = np.maximum(squares - n * mean * mean, 0) / max(n - 1, 1)
    else:
        squares = np.nanvar(cells, 0, ddof=min(1, n - 1))
    deviation = np.sqrt(squares)
    deviation[~(deviation > 0)] = 1
    if hasattr(cells, "tocsc"):
        from scipy import sparse

        return (cells @ sparse.diags(1 / deviation)).tocsc()
    return cells / deviation


def _named(adata: Any, used: np.ndarray, fit: Any) -> None:
    """Fit, and say of which cell and gene an error is."""
    try:
        fit()
    except DataError as error:
        places = []
        if error.row >= 0:
            places.append(f"cell {adata.obs_names[error.row]}")
        if error.column >= 0:
            error.column = int(np.flatnonzero(used)[error.column])
            places.append(f"gene {adata.var_names[error.column]}")
        error.args = (f"quantmf: {', '.join(places)}: {error.problem}",) if places else error.args
        raise
