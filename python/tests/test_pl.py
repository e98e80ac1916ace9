"""Plots: what they draw."""

import numpy as np
import pytest

import quantmf

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def model(counts):
    return quantmf.QMF(3, epochs=5).fit(counts)


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_components(model):
    axes = quantmf.pl.components(model, 4)
    assert len(axes) == 3
    for ax, part in zip(axes, model.components_):
        widths = [bar.get_width() for bar in ax.patches]
        assert widths == sorted(part, reverse=True)[:4]
        assert [of.get_text() for of in ax.get_yticklabels()] == [f"x{i}" for i in np.argsort(-part)[:4]]


def test_curves(model):
    ax = quantmf.pl.curves(model, [2, 7])
    assert [line.get_label() for line in ax.lines] == ["x2", "x7"]
    for line in ax.lines:
        y = line.get_ydata()
        assert y[0] == 0 and y[-1] == 1 and (np.diff(y) >= 0).all()


def test_stability(counts):
    fits = [quantmf.ConsensusNMF(k, n_seeds=3).fit(counts) for k in (2, 3)]
    ax = quantmf.pl.stability(fits)
    assert list(ax.lines[0].get_xdata()) == [2, 3]
    assert (
        list(ax.lines[0].get_ydata()) == [of.silhouette_ for of in fits] and ax.lines[1].get_ydata()[0] == 1
    )


def test_embedding(counts):
    model = quantmf.BQMF(3, epochs=5).fit(counts)
    at = model.distances()
    labels = np.where(counts[:, 0] > np.median(counts[:, 0]), "high", "low")
    ax = quantmf.pl.embedding(model, labels)
    drawn = np.vstack([of.get_offsets() for of in ax.collections])
    assert len(ax.collections) == 2 and sorted(drawn[:, 0]) == sorted(at[:, 0])
    assert quantmf.pl.embedding(model, counts[:, 1], axes=(1, 2)).collections[0].get_offsets().shape == (
        60,
        2,
    )
    product = model.embedding_ @ model.components_
    assert np.linalg.norm(at[0] - at[9]) == pytest.approx(np.linalg.norm(product[0] - product[9]))
