"""Measures the seconds of an epoch of FitNMF over sparse counts, beside scikit-learn's `mu` on the same csr_matrix.

    bench/.work/env/bin/python bench/sparse.py [quick] [D N DENSITY K]

This program makes the matrix: counts whose means have rank k, of which a share that varies from row to row is kept. By default it
is 20000 x 20000, with 5 % of its cells not zero. The contenders fit it under the Kullback-Leibler divergence from one start, on one
thread each:

- scikit-learn's `mu`;
- FitNMF with multiplicative updates and with Newton's method, over sparse rows;
- FitNMF with multiplicative updates over a quarter of the rows, held in full: once these rows, and once these rows with 0.01 added to each
  cell, so that none is zero. Their times are multiplied by four.

All seconds are those of the processor and not of a clock. All contenders take turns, and the least of their epochs counts, so
that other programs disturb little. The program writes the table to standard output. It needs Go, numpy, scipy and scikit-learn.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import scipy.sparse
from sklearn.decomposition import non_negative_factorization

here = pathlib.Path(__file__).resolve().parent
QUICK = "quick" in sys.argv
given = [a for a in sys.argv[1:] if a != "quick"]
D, N, DENSITY, K = (int(given[0]), int(given[1]), float(given[2]), int(given[3])) if given else (2000, 4000, 0.05, 10) if QUICK else (20000, 20000, 0.05, 10)
ROUNDS, EPOCHS = (1, 4) if QUICK else (2, 8)
WARM = {"multiplicative": 2, "newton": 5}  # epochs that do not count: what begins a fit, and multiplicative updates before Newton's method
OURS = {
    "FitNMF, multiplicative updates, sparse rows": ("sparse", "multiplicative", 1),
    "FitNMF, Newton's method, sparse rows": ("sparse", "newton", 1),
    "FitNMF, multiplicative updates, the same rows in full": ("dense", "multiplicative", 4),
    "FitNMF, multiplicative updates, no cell zero": ("all", "multiplicative", 4),
}


def matrix(rng):
    u, v = rng.gamma(0.5, size=(D, K)), rng.gamma(0.5, size=(K, N))
    shares = np.clip(DENSITY * rng.gamma(4, 0.25, size=D), 0, 0.2)
    start, index, values = [0], [], []
    for i in range(D):
        cols = np.flatnonzero(rng.random(N) < shares[i])
        mean = u[i] @ v[:, cols]
        index.append(cols.astype(np.uint32))
        values.append(1.0 + rng.poisson(4 * mean / mean.mean() if len(cols) else mean))
        start.append(start[-1] + len(cols))
    return np.array(start), np.concatenate(index), np.concatenate(values)


def ours(binary, problem, holder, updates):
    env = dict(os.environ, QUANTMF_SPARSE=str(problem), QUANTMF_HOLDER=holder, QUANTMF_UPDATES=updates, QUANTMF_EPOCHS=str(max(EPOCHS, WARM[updates] + 2)), GOMAXPROCS="1")
    out = subprocess.run([str(binary), "-test.run", "TestSparse$", "-test.v"], capture_output=True, text=True, check=True, env=env).stdout
    lines = [line.split() for line in out.splitlines()]
    epochs = [float(l[1]) for l in lines if l and l[0] == "epoch"]
    return min(epochs[WARM[updates]:]), next(int(l[1]) for l in lines if l and l[0] == "memory")


def peer(x, u, v):
    def run(iterations):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            non_negative_factorization(x, W=u.copy(), H=v.copy(), n_components=K, init="custom", solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=iterations)
        return time.process_time() - begin

    one = run(1)
    return (run(3) - one) / 2


def main():
    rng = np.random.default_rng(1)
    start, index, values = matrix(rng)
    scale = np.sqrt(values.sum() / (D * N) / K)
    u, v = scale * (0.5 + rng.random((D, K))), scale * (0.5 + rng.random((K, N)))
    folder = pathlib.Path(tempfile.mkdtemp(dir=here / ".work" if (here / ".work").exists() else None))
    binary, problem = folder / "sparse.test", folder / "problem"
    subprocess.run(["go", "test", "-c", "-o", str(binary), "."], cwd=here, check=True)
    with open(problem, "wb") as f:
        for a in (np.array([D, N, K, len(values)], float), start.astype(float), index, values, u, v):
            a.tofile(f)
    x = scipy.sparse.csr_matrix((values, index.astype(np.int32), start), shape=(D, N))
    best, memory = {}, {}
    for _ in range(ROUNDS):
        seconds = peer(x, u, v)
        best["scikit-learn `mu`, csr_matrix"] = min(seconds, best.get("scikit-learn `mu`, csr_matrix", seconds))
        for name, (holder, updates, times) in OURS.items():
            seconds, most = ours(binary, problem, holder, updates)
            best[name], memory[name] = min(seconds * times, best.get(name, seconds * times)), most
    problem.unlink()
    binary.unlink()
    folder.rmdir()
    mine = best["FitNMF, multiplicative updates, sparse rows"]
    print(f"\n{D} × {N}, {len(values)} cells not zero ({100 * len(values) / (D * N):.1f} %), k = {K}\n")
    print("| | s an epoch | ns a cell that is not zero | times that of multiplicative updates over sparse rows | process, MB |\n|---|---|---|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {seconds:.3f} | {seconds / len(values) * 1e9:.1f} | {seconds / mine:.1f} | {memory.get(name, '')} |")


main()
