"""Measures the seconds that FitNMF takes to the losses of other solvers of NMF, and fills the tables of
docs/measurements/nmf.md and its plot.

    bench/run nmf FOLDER [quick]

FOLDER has the matrices of paper/study/. scikit-learn's `mu` under KL, its `cd` and `mu` under Frobenius, updates that
go ahead (below, in NumPy), nmf-rs and RcppML 1.0.0, where Python and R have them, make 200 and 1000 iterations
without a stopping rule, from the factors from which FitNMF starts. The time of FitNMF to a loss is that of the whole
call up to the first epoch at or below it. Seconds are the processor's, the least of three rounds in turns; 1000
iterations are timed once, and count as five times 200 where that is less.
"""

import gzip
import math
import pathlib
import subprocess
import tempfile
import time
import warnings

from harness import BUILDS, QUICK, arguments, build, digits, fill, fit, geometric, here, pages, plot, table

import numpy as np
from sklearn.decomposition import non_negative_factorization

try:
    import nmf_rs
except ImportError:
    nmf_rs = None

warnings.filterwarnings("ignore")
SETS = {"AML expression": "tcga-laml/exp", "AML miRNA": "tcga-laml/mirna", "Golub": "golub-leukemia/exp",
        "single cells": "pbmc3k-small/counts", "speeches": "sotu-wordcounts/counts"}
RANKS = [10] if QUICK else [5, 10, 20]
ITERATIONS = [200] if QUICK else [200, 1000]
EPOCHS = {1: 150, 2: 400}
ROUNDS = 1 if QUICK else 3
if QUICK:
    SETS = {"AML miRNA": SETS["AML miRNA"]}


def load(name):
    with gzip.open(pathlib.Path(arguments()[0]) / (name + ".tsv.gz"), "rt") as f:
        next(f)
        x = np.array([[float(v) for v in line.rstrip("\n").split("\t")[1:]] for line in f])
    return np.ascontiguousarray(x[x.sum(1) > 0])


def loss(x, u, v, beta):
    w = u @ v
    if beta == 2:
        return ((x - w) ** 2).mean() / 2
    some = x > 0
    return (np.where(some, x * np.log(np.where(some, x, 1) / np.maximum(w, 1e-300)), 0) - x + w).mean()


def ahead(x, u, v, beta, iterations):
    """BMMe (Hien, Leplat and Gillis 2024): a multiplicative update is made of a factor a step ahead of what it is."""
    tiny = 1e-16  # less, and products become denormal, which are slow
    before, tau = (u, v), 1.0
    for t in range(1, iterations + 1):
        after = (1 + math.sqrt(1 + 4 * tau * tau)) / 2
        by, tau = (tau - 1) / after, after
        step = lambda z, was: z + min(by, 1e4 / t**0.75 / max(np.linalg.norm(z - was), tiny)) * np.maximum(z - was, 0)
        a = step(u, before[0])
        before = u, before[1]
        if beta == 1:
            u = np.maximum(a * ((x / (a @ v)) @ v.T / v.sum(1)), tiny)
        else:
            u = np.maximum(a * (x @ v.T / (a @ (v @ v.T))), tiny)
        b = step(v, before[1])
        before = before[0], v
        if beta == 1:
            v = np.maximum(b * (u.T @ (x / (u @ b)) / u.sum(0)[:, None]), tiny)
        else:
            v = np.maximum(b * (u.T @ x / (u.T @ u @ b)), tiny)
    return u, v


def has_rcppml():
    try:
        return not subprocess.run(["Rscript", "-e", "library(RcppML)"], capture_output=True).returncode
    except FileNotFoundError:
        return False


class Problem:
    """A matrix, its start and rank, in files that FitNMF and RcppML read."""

    def __init__(self, folder, x, k, beta):
        rng = np.random.default_rng(k)
        scale = math.sqrt(x.mean() / k)
        self.x, self.k, self.beta = x, k, beta
        self.u = scale * (0.5 + rng.random((x.shape[0], k)))
        self.v = scale * (0.5 + rng.random((k, x.shape[1])))
        self.files = {}
        for name, m in (("X", x), ("U", self.u), ("V", self.v)):
            self.files[name] = str(folder / name)
            np.ascontiguousarray(m).tofile(self.files[name])

    def ours(self, binary, epochs):
        """Returns the processor's seconds and the loss after every epoch."""
        got = fit(binary, D=self.x.shape[0], N=self.x.shape[1], K=self.k, Method="NMF", Beta=float(self.beta),
                  Epochs=epochs, Warm=0.1, **self.files)
        return list(zip(got["Seconds"], got["Losses"]))

    def peer(self, solver, iterations):
        """Returns the processor's seconds and the loss at the end."""
        if solver == "RcppML":
            done = subprocess.run(["Rscript", str(here / "nmf.R"), self.files["X"], self.files["U"],
                                   *map(str, (*self.x.shape, self.k, iterations))], capture_output=True, text=True,
                                  check=True)
            return tuple(map(float, done.stdout.split()))
        start = time.process_time()
        if solver == "ahead":
            a, b = ahead(self.x, self.u, self.v, self.beta, iterations)
            return time.process_time() - start, loss(self.x, a, b, self.beta)
        if solver.startswith("nmf-rs"):
            got = nmf_rs.nmf(self.x, self.k, solver.split()[1], W0=self.u, H0=self.v, max_iter=iterations,
                             num_threads=1)
            return time.process_time() - start, loss(self.x, got.basis, got.coef, self.beta)
        a, b, _ = non_negative_factorization(
            self.x, W=self.u.copy(), H=self.v.copy(), n_components=self.k, init="custom", tol=0, solver=solver,
            max_iter=iterations, beta_loss="kullback-leibler" if self.beta == 1 else "frobenius")
        return time.process_time() - start, loss(self.x, a, b, self.beta)


def reach(trace, target):
    """Returns the number of epochs to a loss, None where none reaches it."""
    return next((e + 1 for e, (_, value) in enumerate(trace) if value <= target * (1 + 1e-12)), None)


def measure(p, solvers, built):
    """Returns {(solver, iterations): ({build: times sooner}, epochs)}, and points for the plot."""
    long = p.ours(built["AVX-512"], EPOCHS[p.beta])
    ends = {(s, n): p.peer(s, n) for s in solvers for n in ITERATIONS}
    epochs = {key: reach(long, end[1]) for key, end in ends.items()}
    most = max([e for e in epochs.values() if e] + [20])
    times, least = {b: [] for b in built}, {s: ends[s, ITERATIONS[0]][0] for s in solvers}
    for turn in range(ROUNDS):
        for b, binary in built.items():
            trace = p.ours(binary, most)
            assert [l for _, l in trace] == [l for _, l in long[:most]], "nmf.py: the builds differ"
            times[b].append([s for s, _ in trace])
        for s in solvers if turn else []:  # the first round was timed above
            least[s] = min(least[s], p.peer(s, ITERATIONS[0])[0])
    times = {b: np.min(t, axis=0) for b, t in times.items()}
    found = {}
    for (s, n), e in epochs.items():
        seconds = min(ends[s, n][0], n / ITERATIONS[0] * least[s])
        found[s, n] = {b: seconds / times[b][e - 1] for b in built} if e else None, e
    points = {s: [(n / ITERATIONS[0] * least[s], ends[s, n][1]) for n in ITERATIONS] for s in solvers}
    return found, (points, times, [l for _, l in long])


def shipped(folder, binary):
    """RcppML on data that it ships, by its defaults and from its own start, and FitNMF of 10 components."""
    rows = [["data", "d × n", "RcppML: s", "loss", "times sooner"]]
    for name in ("aml", "golub", "olivetti", "hawaiibirds", "movielens", "digits"):
        theirs, ours = [], []
        for _ in range(ROUNDS):
            done = subprocess.run(["Rscript", str(here / "nmf.R"), name, "10", str(folder)], capture_output=True,
                                  text=True, check=True).stdout.split()
            d, n = map(int, done[:2])
            theirs.append(float(done[2]))
            got = fit(binary, D=d, N=n, K=10, Method="NMF", Beta=2.0, Epochs=EPOCHS[2], Warm=0.1, X=str(folder / "X"))
            ours.append(got["Seconds"])
        x, u, v = (np.fromfile(folder / f).reshape(s) for f, s in (("X", (d, n)), ("U", (d, 10)), ("V", (10, n))))
        target, seconds = loss(x, u, v, 2), np.min(ours, axis=0)
        e = reach(list(zip(seconds, got["Losses"])), target)
        rows.append([name, f"{d} × {n}", digits(min(theirs)), digits(target),
                     digits(min(theirs) / seconds[e - 1]) if e else "not reached"])
    return table(rows[0], rows[1:])


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    built = build()
    cases, curves = {}, {}
    rust, kl, frobenius = nmf_rs is not None, ["mu", "ahead"], ["cd", "mu", "ahead"]
    kl += ["nmf-rs brunet"] * rust
    frobenius += ["nmf-rs hals", "nmf-rs ehals"] * rust + ["RcppML"] * has_rcppml()
    for beta, solvers in ((1, kl), (2, frobenius)):
        for name, file in SETS.items():
            x = load(file)
            for k in RANKS:
                found, curve = measure(Problem(folder, x, k, beta), solvers, built)
                for (s, n), got in found.items():
                    cases[beta, s, n, "%s %d × %d" % (name, *x.shape), k] = got
                if k == 10:
                    curves[beta, name] = curve
    lines = []
    for beta, s in dict.fromkeys(key[:2] for key in cases):
        cells = {b: [] for b in BUILDS}
        for n in ITERATIONS:
            reached = [g for key, (g, _) in cases.items() if key[:3] == (beta, s, n) and g]
            for b in BUILDS:
                times = [g[b] for g in reached]
                cells[b].append("%.1f/%.1f/%d" % (geometric(times), min(times), len(times)) if times else "0")
        lines.append([("KL, " if beta == 1 else "Frobenius, ") + s] + [", ".join(c) for c in cells.values()])
    parts = {"losses": table(["loss of", *BUILDS], lines)}
    if has_rcppml():
        parts["shipped"] = shipped(folder, built["AVX-512"])
    fill(pages / "nmf.md", parts,
         record={" ".join(map(str, k)): v for k, v in cases.items()})

    colours = {s: f"C{i}" for i, s in enumerate(dict.fromkeys(kl + frobenius))}

    def draw(figure, axes):
        for a, ((beta, name), (points, times, losses)) in zip(np.ravel(axes), curves.items()):
            for s, p in points.items():
                a.plot(*zip(*p), "o-", color=colours[s], label=s, markersize=3)
            for b, style in (("AVX-512", "-"), ("Go alone", "--")):
                a.plot(np.maximum(times[b], 1e-4), losses[:len(times[b])], style, color="black", label="FitNMF, " + b)
            a.set(xscale="log", ylim=(0.98 * min(losses), 1.8 * min(losses)), xlabel="seconds",
                  title=f"{name}, {'KL' if beta == 1 else 'Frobenius'}")
            a.legend(fontsize=6)
        figure.tight_layout()

    plot(pages / "nmf.svg", draw, nrows=2, ncols=len(SETS), figsize=(16, 6))


main()
