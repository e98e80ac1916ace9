"""Estimators: what scikit-learn expects of them, and what the package promises."""

import copy
import pickle
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import quantmf
from quantmf._engine import program

MODELS = [
    quantmf.NMF(3),
    quantmf.NMF(3, beta_loss="kullback-leibler"),
    quantmf.NMF(3, solver="mu", beta_loss=0.5, max_iter=50),
    quantmf.QMF(3),
    quantmf.QMFQ(3, epochs=10),
    quantmf.BQMF(),
]


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return copy.deepcopy(request.param)


def test_shapes(model, counts):
    w = model.fit_transform(counts)
    k = model.n_components_
    assert w.shape == (60, k) and model.components_.shape == (k, 25)
    assert model.reconstruct().shape == counts.shape
    assert model.transform(counts[:7]).shape == (7, k)
    assert list(model.get_feature_names_out())[0] == type(model).__name__.lower() + "0"
    assert np.isfinite(model.history_).all() and model.history_[-1] < model.history_[0]
    assert model.score(counts) < 0


def test_same_again(model, counts):
    a, b = copy.deepcopy(model).fit(counts), copy.deepcopy(model).set_params(workers=2).fit(counts)
    assert a.model_ == b.model_


def test_float32_and_columns(model, counts):
    wide = counts.astype(np.float32)
    by_column = np.asfortranarray(wide)
    assert copy.deepcopy(model).fit(wide).model_ == copy.deepcopy(model).fit(by_column).model_
    assert copy.deepcopy(model).fit(wide).model_ == copy.deepcopy(model).fit(wide.astype(float)).model_


def test_sparse_is_dense(model):
    sparse = pytest.importorskip("scipy.sparse")
    x = sparse.random(80, 30, 0.2, random_state=2, format="csr")
    x.data += 0.5
    x = x[:, np.asarray((x != 0).sum(0)).ravel() > 1]
    assert copy.deepcopy(model).fit(x).model_ == copy.deepcopy(model).fit(x.toarray()).model_
    assert np.array_equal(model.fit(x).transform(x), model.transform(x.toarray()))


def test_missing(model, counts):
    hidden = counts.copy()
    hidden[::7, 3] = np.nan
    filled = model.fit(hidden).reconstruct()
    assert np.isfinite(filled).all()
    far = np.abs(np.log(filled[::7, 3] / counts[::7, 3])).mean()
    mean = np.abs(np.log(np.nanmean(hidden[:, 3]) / counts[::7, 3])).mean()
    assert far < mean


def test_files(model, counts, tmp_path):
    model.fit(counts)
    again = pickle.loads(pickle.dumps(model))
    assert again.model_ == model.model_ and np.array_equal(again.transform(counts), model.transform(counts))
    model.save(tmp_path / "model.qmf")
    read = type(model).load(tmp_path / "model.qmf")
    assert np.array_equal(read.transform(counts), model.transform(counts))
    said = subprocess.run(
        [program(), "inspect", tmp_path / "model.qmf"], capture_output=True, text=True, check=True
    )
    assert "60" in said.stdout and "25" in said.stdout
    other = quantmf.BQMF if not isinstance(model, quantmf.BQMF) else quantmf.NMF
    with pytest.raises(quantmf.OptionError):
        other.load(tmp_path / "model.qmf")


@pytest.mark.parametrize(
    "method, model",
    [("nmf", quantmf.NMF(3, beta_loss="kl")), ("qmf", quantmf.QMF(3)), ("bqmf", quantmf.BQMF(4))],
)
def test_bits_of_the_command(method, model, counts, tmp_path):
    np.save(tmp_path / "x.npy", counts.T)
    command = [
        program(),
        "fit",
        "-method",
        method,
        "-k",
        str(model.n_components),
        "-u",
        "u.npy",
        "-v",
        "v.npy",
        "x.npy",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    model.fit(counts)
    assert np.array_equal(np.load(tmp_path / "u.npy"), model.components_.T)
    assert np.array_equal(np.load(tmp_path / "v.npy"), model.embedding_.T)


def test_weights_of_samples(model, counts):
    """A sample of weight 0 is as if it were not there."""
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    other = counts.copy()
    other[weight == 0] = counts[::-1][weight == 0]
    fit = lambda x, w: copy.deepcopy(model).fit(x, sample_weight=w)  # noqa: E731
    a = fit(counts, weight)
    assert np.array_equal(a.components_, fit(other, weight).components_)
    assert not np.array_equal(a.components_, fit(counts, None).components_)


def test_goes_on_from_a_model(counts):
    for model in (quantmf.NMF(3), quantmf.QMF(3, shrinkage=0)):  # with shrinkage the loss may rise
        first = copy.deepcopy(model).fit(counts)
        again = model.fit(counts, model=first)
        assert again.history_[0] == pytest.approx(first.history_[-1], rel=1e-6)
        assert again.history_[-1] < first.history_[-1]
    with pytest.raises(quantmf.OptionError, match="model"):
        quantmf.NMF(4).fit(counts, model=first)


def test_updated(counts):
    hidden = counts[50:].copy()
    hidden[::2, 3] = np.nan
    far = lambda model: np.abs(np.log(model.reconstruct(hidden)[::2, 3] / counts[50::2, 3])).mean()  # noqa: E731
    model = quantmf.BQMF(3).fit(counts[:12])
    more = model.updated(counts[12:50])
    assert more.embedding_.shape == (12, 3) and far(more) < far(model)
    assert quantmf.BQMF.from_bytes(more.model_).model_ == more.model_


def test_options_are_checked(counts):
    for model, name in [
        (quantmf.QMF(3, learning_rate=-1), "learning_rate"),
        (quantmf.QMF(3, epochs=1.5), "epochs"),
        (quantmf.QMF(3, start="warm"), "start"),
        (quantmf.QMFQ(0), "rank"),
        (quantmf.NMF(3, solver="cd"), "solver"),
        (quantmf.NMF(3, beta_loss="l1"), "beta_loss"),
        (quantmf.NMF(3, init="custom"), "W and H"),
    ]:
        with pytest.raises(quantmf.OptionError, match=name):
            model.fit(counts)


def test_places_of_errors(counts):
    bad = counts.copy()
    bad[5, 2] = -1
    with pytest.raises(
        quantmf.DataError, match="sample 5, feature 2: Negative values in data.*loss='frobenius'"
    ) as of:
        quantmf.QMF(3).fit(bad)
    assert (of.value.row, of.value.column, of.value.value) == (5, 2, -1)
    assert quantmf.QMF(3, loss="frobenius").fit(bad).n_components_ == 3


def test_intervals(counts):
    model = quantmf.BQMF().fit(counts)
    low, high = model.interval(0.9)
    assert (low <= model.median()).all() and (model.median() <= high).all() and (model.deviation() >= 0).all()
    assert ((low <= counts) & (counts <= high)).mean() > 0.85
    with pytest.raises(quantmf.OptionError):
        model.interval(1.5)


def test_new_samples(model, counts):
    model.fit(counts[:50])
    new = counts[50:].copy()
    new[2, 3] = np.nan
    said, each = model.reconstruct(new), model.score_samples(new)
    assert said.shape == new.shape and np.isfinite(said).all() and each.shape == (10,)
    cells = (~np.isnan(new)).sum(1)
    assert (each * cells).sum() / cells.sum() == pytest.approx(model.score(new), rel=1e-9)


def test_imputer(counts):
    holes = counts.copy()
    holes[np.random.default_rng(0).random(counts.shape) < 0.1] = np.nan
    imputer = quantmf.BQMFImputer()
    filled = imputer.fit_transform(holes)
    seen = ~np.isnan(holes)
    assert np.array_equal(filled[seen], holes[seen]) and np.isfinite(filled).all()
    far = lambda of: np.abs(np.log(of / counts))[~seen].mean()  # noqa: E731
    again = imputer.transform(holes)
    assert np.array_equal(again[seen], holes[seen])
    assert far(filled) < 0.5 * far(np.broadcast_to(np.nanmedian(holes, 0), counts.shape)) and far(
        again
    ) < 1.2 * far(filled)
    low, high = imputer.estimator_.interval(0.9)
    assert ((low <= counts) & (counts <= high))[~seen].mean() > 0.8
    low, high = imputer.estimator_.interval(0.9, holes[:5])
    assert low.shape == (5, 25) and (low <= high).all()
    assert list(imputer.get_feature_names_out())[:2] == ["x0", "x1"]


def test_imputer_against_others():
    impute = pytest.importorskip("sklearn.impute")
    from sklearn.datasets import load_breast_cancer, load_wine
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401

    for x in (load_wine().data, load_breast_cancer().data[:200]):
        hidden = np.random.default_rng(1).random(x.shape) < 0.1
        holes = np.where(hidden, np.nan, x)
        far = lambda of: (np.abs(of.fit_transform(holes) - x) / x.std(0))[hidden].mean()  # noqa: B023, E731
        assert far(quantmf.BQMFImputer()) < min(
            far(impute.IterativeImputer(random_state=0)), far(impute.KNNImputer())
        )


def test_progress_and_its_errors(counts):
    told = []
    quantmf.QMF(3, progress=told.append).fit(counts)
    assert told[-1]["done"] == 1 and {"phase", "epoch", "epochs", "loss"} <= told[-1].keys()

    def stop(of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quantmf.QMF(3, progress=stop).fit(counts)
    assert quantmf.QMF(3).fit(counts).n_iter_ > 0  # the engine goes on


def test_warnings(counts):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        quantmf.BQMF(epochs=1).fit(counts)
    assert any(issubclass(of.category, quantmf.ConvergenceWarning) for of in said)


def test_against_scikit_learn(counts):
    theirs = (
        pytest.importorskip("sklearn.decomposition")
        .NMF(3, max_iter=2000, tol=1e-9, random_state=0, init="nndsvda")
        .fit(counts)
    )
    ours = quantmf.NMF(3, max_iter=200).fit(counts)
    assert ours.reconstruction_err_ < 1.01 * theirs.reconstruction_err_
    w = ours.transform(counts)
    assert np.linalg.norm(counts - ours.inverse_transform(w)) == pytest.approx(
        ours.reconstruction_err_, rel=1e-3
    )
    start = quantmf.NMF(3, init="custom", max_iter=0).fit(counts, W=ours.embedding_, H=ours.components_)
    assert start.history_[0] == pytest.approx(ours.history_[ours.n_iter_], rel=1e-9)


def test_habits(counts):
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    with sklearn.config_context(transform_output="pandas"):
        frame = quantmf.NMF(2).fit_transform(counts)
    assert list(frame.columns) == ["nmf0", "nmf1"]
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), quantmf.NMF()), {"nmf__n_components": [1, 3]}, cv=3
    ).fit(counts)
    assert search.best_params_ == {"nmf__n_components": 3}
    assert clone(quantmf.QMF(4, epochs=3)).get_params()["epochs"] == 3


# The columns of the fit and those that transform finds are two answers: the fit makes W and the maps together.
APART = "the fit makes the coordinates and the maps together; transform places samples under the final maps"
# A sample of weight 2 has the loss of two, but a fit begins with random factors of as many samples as it is given.
BEGUN = "fits of other numbers of samples have other random starts"
WEIGHTS = {f"check_sample_weight_equivalence_on_{of}_data": BEGUN for of in ("dense", "sparse")}
EXPECTED = {
    "NMF": WEIGHTS,
    "ConsensusNMF": WEIGHTS,
    "QMF": {"check_transformer_general": APART, "check_transformer_data_not_an_array": APART, **WEIGHTS},
    "QMFQ": {"check_transformer_general": APART, "check_transformer_data_not_an_array": APART, **WEIGHTS},
    "BQMF": WEIGHTS,
}


@pytest.mark.parametrize(
    "model",
    [
        quantmf.NMF(2),
        quantmf.ConsensusNMF(2, n_seeds=3),
        quantmf.QMF(2),
        quantmf.QMFQ(2),
        quantmf.BQMF(),
        quantmf.BQMFImputer(),
    ],
    ids=repr,
)
def test_scikit_learn_checks(model):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    expected = EXPECTED.get(type(model).__name__, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(model, on_fail=None, expected_failed_checks=expected)
    failed = [(of["check_name"], of["exception"]) for of in results if of["status"] == "failed"]
    assert not failed
    assert {of["check_name"] for of in results if of["status"] == "xfail"} == set(expected)


def test_without_scikit_learn(counts, tmp_path):
    """Numpy alone is required."""
    (tmp_path / "sklearn.py").write_text("raise ImportError")
    code = """if True:
        import numpy as np, quantmf
        x = np.arange(1.0, 61).reshape(12, 5) % 7 + 1
        m = quantmf.NMF(2).fit(x)
        assert m.fit_transform(x).shape == (12, 2) and m.get_params()["n_components"] == 2
        assert "NMF(n_components=2)" == repr(m)
        for wrong in (x[:, :2], x[0]):
            try: m.transform(wrong)
            except ValueError: pass
            else: raise SystemExit("taken")
        try: quantmf.QMF().transform(x)
        except AttributeError: pass
        else: raise SystemExit("unfitted")
        """
    import os
    import sys

    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    assert shutil.which(program())


def test_consensus():
    rng = np.random.default_rng(1)
    parts = np.kron(np.eye(3), np.ones(8)) + 0.02
    x = rng.gamma(0.5, size=(80, 3)) @ parts * rng.uniform(0.8, 1.2, size=(80, 24))
    model = quantmf.ConsensusNMF(3, n_seeds=8).fit(x)
    assert model.silhouette_ > 0.9 and model.stability_.min() > 0.9 and model.left_out_ < 3
    assert np.allclose(model.components_.sum(1), 1)
    alike = np.corrcoef(np.vstack([model.components_, parts]))[:3, 3:]
    assert (alike.max(0) > 0.98).all() and len(model.losses_) == 8
    assert quantmf.ConsensusNMF(5, n_seeds=8).fit(x).silhouette_ < model.silhouette_
    assert np.linalg.norm(x - model.embedding_ @ model.components_) == pytest.approx(
        model.reconstruction_err_, rel=1e-3
    )


def test_distances_are_those_of_the_product(counts):
    model = quantmf.BQMF(4).fit(counts)
    at, product = model.distances(), model.embedding_ @ model.components_
    assert at.shape[1] <= 4
    for i, j in ((0, 1), (5, 40), (7, 59)):
        assert np.linalg.norm(at[i] - at[j]) == pytest.approx(
            np.linalg.norm(product[i] - product[j]), rel=1e-9
        )
