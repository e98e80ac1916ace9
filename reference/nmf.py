"""Multiplicative updates and the NNDSVD start of scikit-learn, for nmf_test.go.

Writes testdata/nmf.json.gz. The matrix is a corner of testdata/laml-exp.tsv.gz,
60 genes x 40 patients; the start is drawn here. scikit-learn factorises samples x
features and updates its left factor first, so it gets the transpose: its left
factor is V', which FitNMF updates first too. NNDSVD is of the first 12 patients:
there scikit-learn's randomised SVD is exact. With penalties: the objective and U where
its solvers end, and the coordinates of those patients.
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
PENALTIES = (  # loss, alpha_W (of samples: our V), alpha_H (of features: our U), l1_ratio
    ("frobenius", 0.02, 0.01, 1.0), ("frobenius", 0.05, 0.1, 0.0), ("frobenius", 0.02, 0.04, 0.4),
    ("kl", 0.02, 0.01, 1.0), ("kl", 0.05, 0.1, 0.0), ("kl", 0.02, 0.04, 0.4))
LOSSES = {"kl": "kullback-leibler", "frobenius": "frobenius"}


def divergence(kind, x, y):
    """Mean over all entries."""
    if kind == "frobenius":
        return float(np.mean((x - y) ** 2) / 2)
    ratio = np.where(x > 0, x, 1) / np.where(x > 0, y, 1)
    return float(np.mean(x * np.log(ratio) - x + y))


def penalised(x, u, v, name, alpha_w, alpha_h, ratio):
    """A fit with penalties, its objective by scikit-learn's formula, and coordinates of the first patients."""
    solver = {"frobenius": "cd", "kl": "mu"}[name]
    m = NMF(K, init="custom", solver=solver, beta_loss=LOSSES[name], tol=0, max_iter=20000,
            alpha_W=alpha_w, alpha_H=alpha_h, l1_ratio=ratio)
    w = m.fit_transform(x.T.copy(), W=v.T.copy(), H=u.T.copy())
    h = m.components_
    l1_w, l1_h, l2_w, l2_h = m._compute_regularization(x.T)
    objective = (x.size * divergence(name, x, (w @ h).T) + l1_w * w.sum() + l1_h * h.sum()
                 + l2_w / 2 * (w ** 2).sum() + l2_h / 2 * (h ** 2).sum())
    # Transform by updates adds l1 to a cached sum again and again in 1.9.1, so V of the fit stands for it there.
    few = w[:FEW] if name == "kl" else m.transform(x[:, :FEW].T.copy())
    return {"loss": name, "alphaW": alpha_w, "alphaH": alpha_h, "l1Ratio": ratio,
            "objective": objective, "U": h.T.tolist(), "few": few.T.tolist()}


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
    out["penalised"] = [penalised(x, u, v, *c) for c in PENALTIES]
    w, h = _initialize_nmf(x[:, :FEW].T.copy(), K, init="nndsvd", eps=0, random_state=0)
    out["nndsvdU"], out["nndsvdV"] = h.T.tolist(), w.T.tolist()
    out["S"] = np.linalg.svd(x, compute_uv=False).tolist()
    text = json.dumps(out, separators=(",", ":"))
    to = here / "nmf.json.gz"
    to.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(out["loss"], to.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
