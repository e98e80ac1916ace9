"""Operators: their limits, batches, and gradients by torch and jax against differences."""

import numpy as np
import pytest

import quantmf
from quantmf import soft_quantile, soft_rank, soft_sort

X = np.random.default_rng(3).normal(size=(2, 3, 9))
Q = np.sort(np.random.default_rng(4).normal(size=5))


def test_limits():
    ranks = np.argsort(np.argsort(X, -1), -1) + 1
    assert np.allclose(soft_rank(X, epsilon=0), ranks)
    assert np.allclose(soft_sort(X, epsilon=0), np.sort(X, -1))
    assert np.allclose(soft_quantile(X, np.arange(9.0), epsilon=0), ranks - 1)
    assert np.abs(soft_rank(X, epsilon=1e-3) - ranks).mean() < 0.2


def test_batches_are_their_rows():
    for f in (soft_rank, soft_sort, lambda x: soft_quantile(x, Q)):
        assert np.array_equal(f(X)[1, 2], f(X[1, 2])) and f(X[:0]).shape == (0, 3, 9)
        assert f(X.astype(np.float32)).dtype == np.float32
    assert soft_sort(X, levels=4).shape == (2, 3, 4)
    each = np.broadcast_to(Q, (2, 3, 5))
    assert np.array_equal(soft_quantile(X, each), soft_quantile(X, Q))


def test_errors():
    with pytest.raises(quantmf.OptionError, match="epsilon"):
        soft_rank(X, epsilon=-1)
    with pytest.raises(quantmf.OptionError, match="max_iterations"):
        soft_rank(X, max_iterations=0)
    with pytest.raises(quantmf.DataError):
        soft_rank([1.0, np.nan])
    with pytest.raises(quantmf.ShapeError):
        soft_rank(1.0)
    with pytest.raises(quantmf.QuantmfError):
        soft_quantile(X, Q[::-1])


CALLS = [
    lambda x, q: soft_rank(x, epsilon=0.05),
    lambda x, q: soft_sort(x, epsilon=0.05),
    lambda x, q: soft_sort(x, epsilon=0.05, levels=4),
    lambda x, q: soft_quantile(x, q, epsilon=0.05),
]


@pytest.mark.parametrize("f", CALLS)
def test_torch(f):
    torch = pytest.importorskip("torch")
    x, q = torch.tensor(X, requires_grad=True), torch.tensor(Q, requires_grad=True)
    said = f(x, q)
    assert np.array_equal(said.detach().numpy(), f(X, Q))
    assert torch.autograd.gradcheck(f, (x, q), eps=1e-5, atol=1e-4, rtol=1e-3)
    f(x.float(), q.float()).sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float64


@pytest.mark.parametrize("f", CALLS)
def test_jax(f):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    weights = np.random.default_rng(5).normal(size=f(X, Q).shape)
    loss = lambda x, q: (f(x, q) * weights).sum()  # noqa: E731
    x, q = jax.numpy.asarray(X), jax.numpy.asarray(Q)
    assert np.allclose(jax.jit(f)(x, q), f(X, Q))
    dx, dq = jax.grad(loss, (0, 1))(x, q)
    step = np.random.default_rng(6).normal(size=X.shape)
    want = (loss(X + 1e-5 * step, Q) - loss(X - 1e-5 * step, Q)) / 2e-5
    assert float((dx * step).sum()) == pytest.approx(float(want), rel=1e-3, abs=1e-4)
    step = np.random.default_rng(7).normal(size=Q.shape)
    want = (loss(X, Q + 1e-5 * step) - loss(X, Q - 1e-5 * step)) / 2e-5
    assert float((dq * step).sum()) == pytest.approx(float(want), rel=1e-3, abs=1e-4)
