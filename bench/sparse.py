"""Measures the seconds of an epoch of FitNMF over sparse counts, beside scikit-learn's `mu` on the same csr_matrix,
and fills a table of docs/measurements/cost.md.

    bench/run sparse [quick] [D N DENSITY K]

The matrix has counts whose means have rank k, of which a share that varies from row to row is kept. All start from
the same factors, on one thread, under KL where nothing is said. "In full" is timed over a quarter of the rows, and
its time multiplied by four. Seconds are the processor's; all take turns, and the least epoch of each counts.
"""

import pathlib
import tempfile
import time
import warnings

from harness import QUICK, arguments, build, digits, fill, fit, machine, pages, table

import numpy as np
import scipy.sparse
from sklearn.decomposition import non_negative_factorization

warnings.filterwarnings("ignore")
given = arguments()
D, N, DENSITY, K = [int(given[0]), int(given[1]), float(given[2]), int(given[3])] if given else (
    [2000, 4000, 0.05, 10] if QUICK else [20000, 20000, 0.05, 10])
ROUNDS, EPOCHS = (1, 4) if QUICK else (2, 8)
OURS = {  # holder, updates, β, epochs that do not count: what begins a fit, updates before Newton's
    "FitNMF, updates, sparse rows": ("", "multiplicative", 1, 2),
    "Newton's method, sparse rows": ("", "newton", 1, 5),
    "updates, the same rows in full": ("full", "multiplicative", 1, 2),
    "updates, no cell zero": ("positive", "multiplicative", 1, 2),
    "Frobenius, updates, sparse rows": ("", "multiplicative", 2, 2),
    "Frobenius, Newton's method, sparse rows": ("", "newton", 2, 2),
}


def matrix(rng):
    u, v = rng.gamma(0.5, size=(D, K)), rng.gamma(0.5, size=(K, N))
    starts, columns, values = [0], [], []
    for i, share in enumerate(np.clip(DENSITY * rng.gamma(4, 0.25, size=D), 0, 0.2)):
        at = np.flatnonzero(rng.random(N) < share)
        mean = u[i] @ v[:, at]
        columns.append(at)
        values.append(1.0 + rng.poisson(4 * mean / mean.mean() if len(at) else mean))
        starts.append(starts[-1] + len(at))
    return np.array(starts), np.concatenate(columns), np.concatenate(values)


def main():
    rng = np.random.default_rng(1)
    starts, columns, values = matrix(rng)
    scale = np.sqrt(values.sum() / (D * N) / K)
    u, v = scale * (0.5 + rng.random((D, K))), scale * (0.5 + rng.random((K, N)))
    x = scipy.sparse.csr_matrix((values, columns.astype(np.int32), starts), shape=(D, N))
    binary = build(["AVX-512"])["AVX-512"]

    def peer():
        def run(iterations):
            begin = time.process_time()
            non_negative_factorization(x, W=u.copy(), H=v.copy(), n_components=K, init="custom", solver="mu",
                                       beta_loss="kullback-leibler", tol=0, max_iter=iterations)
            return time.process_time() - begin

        one = run(1)
        return (run(3) - one) / 2

    with tempfile.TemporaryDirectory() as folder:
        def write(rows):
            files = {}
            for name, a in (("Starts", starts[:rows + 1]), ("Columns", columns[:starts[rows]]),
                            ("Values", values[:starts[rows]]), ("U", u[:rows]), ("V", v)):
                files[name] = str(pathlib.Path(folder) / f"{name}{rows}")
                np.ascontiguousarray(a, dtype=float).tofile(files[name])
            return files

        files = {rows: write(rows) for rows in (D, D // 4)}

        def ours(holder, updates, beta, warm):
            rows = D // 4 if holder else D
            got = fit(binary, D=rows, N=N, K=K, Holder=holder, Method="NMF", Updates=updates, Beta=beta,
                      Epochs=max(EPOCHS, warm + 2), **files[rows])
            return min(np.diff(got["Seconds"])[warm - 1:]) * D / rows

        contenders = {name: lambda of=of: ours(*of) for name, of in OURS.items()}
        contenders["scikit-learn `mu`, csr_matrix"] = peer
        times = [{name: call() for name, call in contenders.items()} for _ in range(ROUNDS)]
    first = next(iter(OURS))
    lines = []
    for name in contenders:
        least = min(t[name] for t in times)
        ratios = sorted(t[name] / t[first] for t in times)
        lines.append([name, digits(least), digits(1e9 * least / len(values)),
                      "%.1f (%.1f–%.1f)" % (least / min(t[first] for t in times), ratios[0], ratios[-1])])
    fill(pages / "cost.md", {"sparse": table(["", "s an epoch", "ns a nonzero cell",
                                              "times the first row (each run)"], lines)
                             + "\n%d × %d, %.1f %% not zero, k = %d; %s.\n" % (
                                 D, N, 100 * len(values) / D / N, K, machine())}, record=times)


main()
