"""Multiplicative updates and the NNDSVD start of scikit-learn, for nmf_test.go.

Writes testdata/nmf.json.gz. The matrix is a corner of testdata/laml-exp.tsv.gz,
60 genes x 40 patients; the start is drawn here. scikit-learn factorises samples x
features and updates its left factor first, so it gets the transpose: its left
factor is V', which FitNMF updates first too. NNDSVD is of the first 12 patients:
there scikit-learn's randomised SVD is exact.
"""

import gzip
import json
import pathlib
import warnings

import numpy as np
import sklearn
from sklearn.decomposition import NMF
from sklearn.decomposition._nmf import _initialize_nmf
from sklearn.exceptions import ConvergenceWarning

D, N, K = 60, 40, 5
FEW = 12
UPDATES = (1, 10, 200)
LOSSES = {"kl": "kullback-leibler", "frobenius": "frobenius"}


def divergence(kind, x, y):
    """Mean over all entries."""
    if kind == "frobenius":
        return float(np.mean((x - y) ** 2) / 2)
    ratio = np.where(x > 0, x, 1) / np.where(x > 0, y, 1)
    return float(np.mean(x * np.log(ratio) - x + y))


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "testdata"
    with gzip.open(here / "laml-exp.tsv.gz", "rt") as f:
        next(f)
        x = np.array([[float(v) for v in next(f).split("\t")[1:N + 1]] for _ in range(D)])
    rng = np.random.default_rng(5)
    u, v = (np.round(rng.uniform(0.2, 2.0, s), 4) for s in ((D, K), (K, N)))
    out = {"source": "scikit-learn " + sklearn.__version__ + ", NMF(solver='mu', init='custom', tol=0)",
           "x": x.tolist(), "u": u.tolist(), "v": v.tolist(), "loss": {}}
    warnings.simplefilter("ignore", ConvergenceWarning)  # there is no tolerance to reach
    for name, loss in LOSSES.items():
        out["loss"][name] = {}
        for n in UPDATES:
            m = NMF(K, init="custom", solver="mu", beta_loss=loss, tol=0, max_iter=n)
            w = m.fit_transform(x.T.copy(), W=v.T.copy(), H=u.T.copy())
            out["loss"][name][str(n)] = divergence(name, x, (w @ m.components_).T)
        if name == "kl":
            out["U"], out["V"] = m.components_.T.tolist(), w.T.tolist()
    w, h = _initialize_nmf(x[:, :FEW].T.copy(), K, init="nndsvd", eps=0, random_state=0)
    out["nndsvdU"], out["nndsvdV"] = h.T.tolist(), w.T.tolist()
    out["S"] = np.linalg.svd(x, compute_uv=False).tolist()
    text = json.dumps(out, separators=(",", ":"))
    to = here / "nmf.json.gz"
    to.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(out["loss"], to.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
