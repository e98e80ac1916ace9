"""Differentiable ranks, sorting and quantile maps along the last axis, of arrays, torch tensors and jax arrays."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from ._engine import call
from ._errors import ShapeError, camel

__all__ = ["soft_quantile", "soft_rank", "soft_sort"]


def soft_rank(x: Any, *, epsilon: float | None = None, **options: Any) -> Any:
    """Return the soft ranks of x along its last axis, from 1 to n.

    Parameters
    ----------
    x : array, torch tensor or jax array of shape (..., n)
        Of a tensor or a jax array the result has gradients.
    epsilon : float, default 0.01
        How much is smoothed; 0 gives the exact ranks, ties averaged, and no gradient.
    **options
        ``levels``, ``squash``, ``tolerance``, ``workers`` and others of the package, by their names in snake_case.

    Returns
    -------
    As x, of shape (..., n)

    References
    ----------
    Cuturi, Teboul and Vert, "Differentiable Ranks and Sorting using Optimal Transport", NeurIPS 2019.
    """
    return _along("softRankRows", x, None, _options(epsilon, options))


def soft_sort(x: Any, *, epsilon: float | None = None, **options: Any) -> Any:
    """Return the soft order statistics of x along its last axis, not decreasing.

    Parameters and references are those of ``soft_rank``; with ``levels=m`` the result has m of them.
    """
    return _along("softSortRows", x, None, _options(epsilon, options))


def soft_quantile(x: Any, q: Any, *, epsilon: float | None = None, **options: Any) -> Any:
    """Map x along its last axis onto the values q, in the order of x.

    Parameters
    ----------
    x : array, torch tensor or jax array of shape (..., n)
    q : the same of shape (..., m) or (m,), not decreasing along its last axis
    epsilon, **options : see soft_rank

    Returns
    -------
    As x, of shape (..., n), in [q_1, q_m], with gradients in x and q.

    References
    ----------
    Cuturi, Teboul, Niles-Weed and Vert, "Supervised Quantile Normalization for Low-rank Matrix Approximation", ICML 2020.
    """
    return _along("softQuantileRows", x, q, _options(epsilon, options))


def _options(epsilon: float | None, options: dict[str, Any]) -> dict[str, Any]:
    given = {camel(name): value for name, value in options.items() if value is not None}
    return given if epsilon is None else {**given, "epsilon": float(epsilon)}


def _along(name: str, x: Any, q: Any, options: dict[str, Any]) -> Any:
    """Dispatch by the type of x."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(x, torch.Tensor):
        return _by_torch(name, x, q, options)
    if jax is not None and isinstance(x, jax.Array):
        return _by_jax(name, x, q, options)
    x = np.asarray(x)
    q = None if q is None else np.asarray(q)
    return _forward(name, x, q, options).astype(_float(x.dtype), copy=False)


def _float(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def _rows(of: Any) -> np.ndarray:
    of = np.asarray(of, np.float64)
    if of.ndim == 0:
        raise ShapeError("quantmf: a number has no last axis")
    return np.ascontiguousarray(of).reshape(math.prod(of.shape[:-1]), of.shape[-1])


def _forward(name: str, x: np.ndarray, q: np.ndarray | None, options: dict[str, Any]) -> np.ndarray:
    rows = _rows(x)
    if not rows.shape[0]:
        return np.empty(x.shape)
    result = call(name, x=rows, q=None if q is None else _rows(q), options=options)
    return result.reshape(*x.shape[:-1], result.shape[1])


def _backward(
    name: str, x: np.ndarray, q: np.ndarray | None, z: np.ndarray, options: dict[str, Any]
) -> tuple:
    """Return the gradients in x and q."""
    rows = _rows(x)
    if not rows.shape[0]:
        return np.zeros(x.shape), None if q is None else np.zeros(q.shape)
    of = call(name + "VJP", x=rows, q=None if q is None else _rows(q), z=_rows(z), options=options)
    if q is None:
        return of.reshape(x.shape), None
    dq = of["q"]
    return of["x"].reshape(x.shape), (dq.sum(0) if q.ndim == 1 else dq).reshape(q.shape)


_torch_function: Any = None


def _by_torch(name: str, x: Any, q: Any, options: dict[str, Any]) -> Any:
    import torch

    global _torch_function
    if _torch_function is None:

        class Along(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, q, name, options):
                ctx.save_for_backward(x, q)
                ctx.how = name, options
                said = _forward(name, _numpy(x), _numpy(q), options)
                return torch.from_numpy(said).to(x)

            @staticmethod
            def backward(ctx, z):
                x, q = ctx.saved_tensors
                name, options = ctx.how
                dx, dq = _backward(name, _numpy(x), _numpy(q), _numpy(z), options)
                return (
                    torch.from_numpy(dx).to(x),
                    None if q is None else torch.from_numpy(dq).to(q),
                    None,
                    None,
                )

        _torch_function = Along
    if q is not None and not isinstance(q, torch.Tensor):
        q = torch.as_tensor(q, dtype=x.dtype, device=x.device)
    return _torch_function.apply(x, q, name, options)


def _numpy(of: Any) -> np.ndarray | None:
    return None if of is None else of.detach().cpu().double().numpy()


def _by_jax(name: str, x: Any, q: Any, options: dict[str, Any]) -> Any:
    import jax
    import jax.numpy as jnp

    n = options.get("levels", x.shape[-1]) if name == "softSortRows" else x.shape[-1]
    like = jax.ShapeDtypeStruct((*x.shape[:-1], n), jnp.result_type(x, float))

    def pure(x, q):
        said = lambda x, q: _forward(
            name, np.asarray(x), None if q is None else np.asarray(q), options
        ).astype(like.dtype)  # noqa: E731
        return jax.pure_callback(said, like, x, q, vmap_method="sequential")

    along = jax.custom_vjp(pure)

    def back(kept, z):
        x, q = kept
        likes = tuple(None if of is None else jax.ShapeDtypeStruct(of.shape, of.dtype) for of in (x, q))

        def gradients(x, q, z):
            of = _backward(name, np.asarray(x), None if q is None else np.asarray(q), np.asarray(z), options)
            return tuple(None if one is None else one.astype(like.dtype) for one, like in zip(of, likes))

        return jax.pure_callback(gradients, likes, x, q, z, vmap_method="sequential")

    along.defvjp(lambda x, q: (pure(x, q), (x, q)), back)
    return along(x, None if q is None else jnp.asarray(q, x.dtype))
