"""Plots of fitted models by matplotlib. Each draws into ``ax``, or into axes of its own, which it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["components", "curves", "embedding", "stability"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _features(model: Any) -> np.ndarray:
    names = getattr(model, "feature_names_in_", None)
    return np.asarray(
        [f"x{i}" for i in range(model.n_features_in_)] if names is None else names, dtype=object
    )


def components(model: Any, n_features: int = 10, *, ax: Any = None) -> Any:
    """Draw the largest features of each component as bars, one component beside the other.

    Parameters
    ----------
    model : a fitted estimator
    n_features : int, default 10
        Features of each component.
    ax : array of matplotlib axes, one a component, optional

    Returns
    -------
    array of matplotlib axes
    """
    parts, names = model.components_, _features(model)
    if ax is None:
        import matplotlib.pyplot as plt

        size = (1.8 * len(parts) + 1, 0.22 * n_features + 1)
        ax = plt.subplots(1, len(parts), figsize=size, squeeze=False, layout="constrained")[1][0]
    for at, (part, one) in enumerate(zip(parts, np.ravel(ax))):
        top = np.argsort(-np.abs(part), kind="stable")[:n_features]
        one.barh(np.arange(len(top)), part[top])
        one.set_yticks(np.arange(len(top)), names[top])
        one.invert_yaxis()
        one.set_title(f"component {at}")
    return ax


def curves(model: Any, features: Sequence[int], *, ax: Any = None) -> Any:
    """Draw the maps T of features over the values of their columns of W H, each a line between 0 and 1.

    Parameters
    ----------
    model : a fitted QMF, QMFQ or BQMF
    features : indices, or names where the model was fitted to a data frame or an AnnData
    ax : matplotlib axes, optional
    """
    ax, names = _axes(ax), list(_features(model))
    for feature in features:
        at = names.index(feature) if isinstance(feature, str) else int(feature)
        product = model.embedding_ @ model.components_[:, at]
        low, high = product.min(), product.max()
        share = np.linspace(0, 1, 201)
        said = model.curve(at, low + share * (high - low))
        height = said.max() - said.min()
        ax.plot(share, (said - said.min()) / (height if height > 0 else 1), label=str(names[at]))
    ax.set(xlabel="W H of the feature, from its lowest to its highest", ylabel="T, likewise")
    ax.legend()
    return ax


def stability(by_k: Any, *, ax: Any = None) -> Any:
    """Draw the stability of components and the loss over their number.

    Parameters
    ----------
    by_k : data frame of ``tl.consensus_nmf``, or a sequence of fitted ``ConsensusNMF``
    ax : matplotlib axes, optional
    """
    if hasattr(by_k, "columns"):
        ks, stable, loss = (np.asarray(by_k[name]) for name in ("n_components", "stability", "loss"))
    else:
        ks, stable, loss = np.array(
            [(of.n_components_, of.silhouette_, of.history_[of.n_iter_]) for of in by_k], float
        ).T
    ax = _axes(ax)
    ax.plot(ks, stable, "o-", label="stability")
    ax.plot(ks, loss / max(loss.max(), 1e-300), "s--", label="loss, of the largest")
    ax.set(xlabel="components", ylim=(0, 1.05), xticks=ks)
    ax.legend()
    return ax


def embedding(model: Any, color: Any = None, *, axes: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Draw the fitted samples as points by two of their coordinates.

    Parameters
    ----------
    model : a fitted estimator
    color : array of shape (n_samples,), optional
        Numbers, or labels, of which each has a colour and a place in the legend.
    axes : which coordinates, default (0, 1)
    ax : matplotlib axes, optional
    """
    at = model.distances() if hasattr(model, "distances") else model.embedding_
    ax = _axes(ax)
    x, y = at[:, axes[0]], at[:, axes[1]]
    if color is None or np.asarray(color).dtype.kind in "fiub":
        ax.scatter(x, y, s=8, c=color)
    else:
        color = np.asarray(color)
        for label in np.unique(color):
            ax.scatter(x[color == label], y[color == label], s=8, label=str(label))
        ax.legend()
    ax.set(xlabel=f"coordinate {axes[0]}", ylabel=f"coordinate {axes[1]}")
    return ax
