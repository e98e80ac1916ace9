"""Tools for AnnData: keys, masks, backed files, and scanpy after them."""

import os
import tracemalloc
import warnings

import numpy as np
import pytest

import quantmf

anndata = pytest.importorskip("anndata")
sparse = pytest.importorskip("scipy.sparse")


def cells(n=300, genes=60, programs=4, seed=0, depth=400):
    """Return counts of cells that use programs of genes, most of each cell one of them."""
    of = np.random.default_rng(seed)
    kind = of.integers(0, programs, n)
    use = of.dirichlet(np.full(programs, 0.2), n) * 0.3
    use[np.arange(n), kind] += 0.7
    spectra = of.gamma(0.15, size=(programs, genes)) + 0.01
    rates = (use @ (spectra / spectra.sum(1, keepdims=True))) * depth * of.lognormal(0, 0.3, (n, 1))
    adata = anndata.AnnData(sparse.csr_matrix(of.poisson(rates).astype(np.float32)))
    adata.obs_names = [f"c{i}" for i in range(n)]
    adata.var_names = [f"g{i}" for i in range(genes)]
    adata.obs["kind"] = [f"k{i}" for i in kind]
    adata.uns["spectra"] = spectra
    return adata


TOOLS = [
    (quantmf.tl.nmf, "nmf", {"n_components": 3}),
    (quantmf.tl.qmf, "qmf", {"n_components": 3, "epochs": 3}),
    (quantmf.tl.bqmf, "bqmf", {"n_components": 3, "epochs": 5}),
    (quantmf.tl.consensus_nmf, "consensus_nmf", {"n_components": [2, 3], "n_seeds": 3}),
]


@pytest.fixture(params=TOOLS, ids=lambda of: of[1])
def tool(request):
    return request.param


def same(a, b, key):
    return np.array_equal(a.obsm["X_" + key], b.obsm["X_" + key]) and np.array_equal(a.varm[key], b.varm[key])


@pytest.mark.filterwarnings("ignore::quantmf.ConvergenceWarning")
def test_keys_and_files(tool, tmp_path):
    f, key, how = tool
    adata = cells()
    assert f(adata, **how) is None
    assert adata.obsm["X_" + key].shape == (300, 3) and adata.varm[key].shape == (60, 3)
    copied = f(cells(), key_added="other", copy=True, **how)
    assert np.array_equal(copied.obsm["X_other"], adata.obsm["X_" + key])
    adata.write_h5ad(tmp_path / "a.h5ad")
    read = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert same(read, adata, key)
    model = quantmf.tl.model(read, key)
    assert np.array_equal(model.components_.T, adata.varm[key]) and model.reconstruct().shape == (300, 60)
    assert list(model.feature_names_in_) == list(adata.var_names)
    assert read.uns[key]["params"]["n_components"] == 3
    again = f(cells(), copy=True, **how)
    assert same(again, adata, key)


@pytest.mark.filterwarnings("ignore::quantmf.ConvergenceWarning")
def test_backed_sparse_and_dense_are_one(tool, tmp_path, monkeypatch):
    f, key, how = tool
    adata = cells()
    adata.var["highly_variable"] = np.arange(60) % 3 > 0
    want = f(adata, copy=True, **how)
    assert not want.varm[key][::3].any() and want.varm[key][1::3].any()
    assert list(quantmf.tl.model(want, key).feature_names_in_) == [f"g{i}" for i in range(60) if i % 3]
    alone = adata[:, adata.var["highly_variable"]].copy()
    f(alone, **how)
    assert np.array_equal(alone.varm[key], want.varm[key][np.arange(60) % 3 > 0])
    monkeypatch.setattr(quantmf.tl, "_BLOCK", 60 * 70)  # four blocks and a rest
    for name, X in (("csr", adata.X), ("csc", adata.X.tocsc()), ("dense", adata.X.toarray())):
        of = anndata.AnnData(X, obs=adata.obs[["kind"]], var=adata.var)
        of.write_h5ad(tmp_path / f"{name}.h5ad")
        backed = anndata.read_h5ad(tmp_path / f"{name}.h5ad", backed="r")
        f(backed, **how)
        close = name == "dense" and key == "consensus_nmf"  # deviations of genes are summed in another order
        assert same(backed, want, key) or close and np.allclose(backed.varm[key], want.varm[key], atol=1e-4)
        backed.file.close()
    adata.layers["counts"], adata.X = adata.X, None
    f(adata, layer="counts", mask_var=None, **how)
    assert adata.varm[key][::3].any()


def test_a_backed_file_is_not_densified(tmp_path):
    x = sparse.random(4000, 3000, 0.01, format="csr", dtype=np.float32, random_state=1)
    anndata.AnnData(x).write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    tracemalloc.start()
    quantmf.tl.nmf(backed, 2, max_iter=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * 3000 * 4 / 4  # a quarter of the matrix in full


def test_errors_name_cells_and_genes():
    adata = cells()
    adata.X[7, 12] = -1
    adata.var["some"] = np.arange(60) >= 10
    with pytest.raises(quantmf.DataError, match="cell c7, gene g12: .*egative") as of:
        quantmf.tl.nmf(adata, 2, mask_var="some")
    assert (of.value.row, of.value.column) == (7, 12)
    for wrong in ("nothing", np.ones(3, bool), np.zeros(60, bool), np.ones(60)):
        with pytest.raises(quantmf.OptionError, match="mask_var"):
            quantmf.tl.nmf(adata, 2, mask_var=wrong)
    with pytest.raises(quantmf.OptionError, match="n_components"):
        quantmf.tl.consensus_nmf(adata, [])
    adata.X = None
    with pytest.raises(quantmf.QuantmfError, match="layer"):
        quantmf.tl.nmf(adata, 2)


def test_programs_come_back():
    adata = cells(600)
    quantmf.tl.consensus_nmf(adata, [2, 4, 7], n_seeds=10, scale=False)
    by_k = adata.uns["consensus_nmf"]["by_k"]
    assert list(by_k["n_components"]) == [2, 4, 7] and by_k["loss"].is_monotonic_decreasing
    assert by_k["stability"].iloc[1] > 0.9 > by_k["stability"].iloc[2]
    quantmf.tl.consensus_nmf(adata, 4, n_seeds=10, scale=False)
    alike = np.corrcoef(np.vstack([adata.varm["consensus_nmf"].T, adata.uns["spectra"]]))[:4, 4:]
    assert (alike.max(0) > 0.95).all() and adata.uns["consensus_nmf"]["stability"].min() > 0.9


def test_scale_is_that_of_scanpy():
    sc = pytest.importorskip("scanpy")
    adata = cells()
    scaled = adata.copy()
    sc.pp.scale(scaled, zero_center=False)
    for of in (scaled.X, scaled.X.toarray()):
        x = adata.X if hasattr(of, "tocsc") else adata.X.toarray()
        got = quantmf.tl._scaled(x.tocsc() if hasattr(x, "tocsc") else x)
        assert np.allclose(got.toarray() if hasattr(got, "toarray") else got, scaled.X.toarray(), rtol=1e-5)


def test_scanpy_goes_on(tmp_path):
    """From an h5ad to clusters; QUANTMF_CELLS=20000 for as many cells, and a fiftieth as many genes."""
    sc = pytest.importorskip("scanpy")
    metrics = pytest.importorskip("sklearn.metrics")
    n = int(os.environ.get("QUANTMF_CELLS", 400))
    cells(n, max(60, n // 50)).write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    quantmf.tl.consensus_nmf(backed, 4, n_seeds=5, scale=False)
    alike = np.corrcoef(np.vstack([backed.varm["consensus_nmf"].T, backed.uns["spectra"]]))[:4, 4:]
    assert (alike.max(0) > 0.95).all()
    adata = backed.to_memory()
    sc.pp.normalize_total(adata, target_sum=1e3)
    sc.pp.log1p(adata)
    quantmf.tl.bqmf(adata, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(adata, use_rep="X_bqmf", transformer="sklearn")
        sc.tl.umap(adata, maxiter=20)
        sc.tl.leiden(adata, resolution=0.3, flavor="igraph", n_iterations=2)
    assert adata.obsm["X_umap"].shape == (n, 2)
    # Leiden divides kinds where there are many cells; it mixes none.
    assert metrics.homogeneity_score(adata.obs["kind"], adata.obs["leiden"]) > 0.9
