"""Measures the seconds that FitNMF takes to the losses of scikit-learn's solvers of NMF, from the same start.

    bench/.work/env/bin/python bench/nmf.py FOLDER [quick]

FOLDER has the matrices of paper/study/, which are public. Five of them are fitted with k of 5, 10 and 20,
on one thread, by these contenders:

- scikit-learn's `mu` under KL, and `cd` and `mu` under Frobenius: 200 and 1000 iterations without a stopping rule;
- FitNMF of this package by Newton's method, in three builds;
- RcppML (r-cran-rcppml of Debian), where R has it, from its own random start.

The time of FitNMF to a loss is that of the whole call up to the first epoch at or below it. All seconds are
those of the processor and not of a clock: the least of three rounds in which all contenders take turns, so
that other programs disturb little. 1000 iterations are timed once, and count as five times 200 where that is
less. The program writes docs/measurements/nmf.svg, and the tables to standard output. It needs Go, numpy,
scikit-learn and matplotlib.
"""

import gzip
import math
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
from sklearn.decomposition import non_negative_factorization

here = pathlib.Path(__file__).resolve().parent
data = pathlib.Path(sys.argv[1])
QUICK = "quick" in sys.argv
SETS = {
    "AML expression": "tcga-laml/exp",
    "AML miRNA": "tcga-laml/mirna",
    "Golub": "golub-leukemia/exp",
    "single cells": "pbmc3k-small/counts",
    "speeches": "sotu-wordcounts/counts",
}
RANKS = [10] if QUICK else [5, 10, 20]
ITERATIONS = [200] if QUICK else [200, 1000]
EPOCHS = {1: 150, 2: 400}
ROUNDS = 1 if QUICK else 3
BUILDS = {"native": "best", "avx2": "AVX2", "purego": "Go alone"}


def build(folder):
    cpu = here.parent / "internal" / "cpu" / "cpu_amd64.go"
    held = folder / "cpu_avx2.go"
    text = cpu.read_text()
    changed = text.replace("\nvar Level = detect()\n", "\nvar Level = min(detect(), AVX2)\n")
    assert changed != text, "nmf.py: no line to hold to AVX2"
    held.write_text(changed)
    overlay = folder / "overlay.json"
    overlay.write_text('{"Replace": {"%s": "%s"}}' % (cpu, held))
    flags = {"native": [], "avx2": ["-overlay", str(overlay)], "purego": ["-tags", "purego"]}
    for name, more in flags.items():
        subprocess.run(["go", "test", "-c", "-o", str(folder / name), *more, "."], cwd=here, check=True)


def load(name):
    with gzip.open(data / (name + ".tsv.gz"), "rt") as f:
        next(f)
        x = np.array([[float(v) for v in line.rstrip("\n").split("\t")[1:]] for line in f])
    return np.ascontiguousarray(x[x.sum(1) > 0])


def loss(x, u, v, beta):
    w = u @ v
    if beta == 2:
        return ((x - w) ** 2).mean() / 2
    some = x > 0
    return (np.where(some, x * np.log(np.where(some, x, 1) / np.maximum(w, 1e-300)), 0) - x + w).mean()


def has_rcppml():
    try:
        return subprocess.run(["Rscript", "-e", "library(RcppML)"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def peer(problem, x, u, v, beta, solver, iterations):
    if solver == "RcppML":
        out = subprocess.run(["Rscript", str(here / "nmf.R"), str(problem), str(iterations)], capture_output=True, text=True, check=True).stdout
        return tuple(map(float, out.split()))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b, _ = non_negative_factorization(
            x, W=u.copy(), H=v.copy(), n_components=u.shape[1], init="custom", tol=0, max_iter=iterations,
            solver=solver, beta_loss="kullback-leibler" if beta == 1 else "frobenius")
    return time.process_time() - start, loss(x, a, b, beta)


def ours(folder, build, problem, epochs):
    """Returns the processor seconds and the loss after every epoch."""
    out = subprocess.run([str(folder / build), "-test.run", "TestLosses$", "-test.v"], capture_output=True, text=True, check=True,
                         env=dict(os.environ, QUANTMF_NMF=str(problem), QUANTMF_EPOCHS=str(epochs), GOMAXPROCS="1")).stdout
    return [tuple(map(float, line.split()[1:])) for line in out.splitlines() if line.startswith("loss ")]


def reach(trace, target):
    """Returns the number of epochs to a loss, or None if no epoch reaches it."""
    return next((e + 1 for e, (_, value) in enumerate(trace) if value <= target * (1 + 1e-12)), None)


class Table:
    def __init__(self, title, solver):
        self.solver, self.rows = solver, []
        self.gains = {(n, b): [] for n in ITERATIONS for b in BUILDS}
        of = "RcppML" if solver == "RcppML" else f"scikit-learn's `{solver}`"
        cells = ["set", "k"]
        for n in ITERATIONS:
            cells += [f"`{solver}`, {n} iterations, s"] + [f"{b}: times faster" for b in BUILDS.values()] + ["epochs"]
        self.head = f"\n### {title}, {of}\n\n| " + " | ".join(cells) + " |\n|" + "---|" * len(cells)

    def enter(self, name, k, seconds, epochs, times):
        row = [name, str(k)]
        for n in ITERATIONS:
            row.append(f"{seconds[n]:.2f}")
            for b in BUILDS:
                gain = seconds[n] / times[b][epochs[n] - 1] if epochs[n] else math.nan
                self.gains[n, b].append(gain)
                row.append("not reached" if math.isnan(gain) else f"{gain:.1f}")
            row.append(str(epochs[n] or "–"))
        self.rows.append(row)

    def write(self):
        row = ["geometric mean of those reached; least", ""]
        for n in ITERATIONS:
            row.append("")
            for b in BUILDS:
                reached = [g for g in self.gains[n, b] if not math.isnan(g)]
                row.append(f"{math.exp(np.mean(np.log(reached))):.1f}; {min(reached):.1f}; {len(reached)} of {len(self.gains[n, b])}" if reached else "–")
            row.append("")
        print(self.head)
        for r in self.rows + [row]:
            print("| " + " | ".join(r) + " |")


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    build(folder)
    curves = {}
    for beta, title, solvers in ((1, "KL", ["mu"]), (2, "Frobenius", ["cd", "mu"] + (["RcppML"] if has_rcppml() else []))):
        tables = [Table(title, s) for s in solvers]
        for name, file in SETS.items():
            x = load(file)
            for k in RANKS:
                rng = np.random.default_rng(k)
                scale = math.sqrt(x.mean() / k)
                u, v = scale * (0.5 + rng.random((x.shape[0], k))), scale * (0.5 + rng.random((k, x.shape[1])))
                problem = folder / "problem"
                head = np.array([*x.shape, k, beta], dtype=float)
                problem.write_bytes(b"".join(np.ascontiguousarray(m).tobytes() for m in (head, x, u, v)))
                long = ours(folder, "native", problem, EPOCHS[beta])
                ends = {s: {n: peer(problem, x, u, v, beta, s, n) for n in ITERATIONS} for s in solvers}
                epochs = {s: {n: reach(long, ends[s][n][1]) for n in ITERATIONS} for s in solvers}
                most = max([e for s in solvers for e in epochs[s].values() if e] + [20])
                times = {b: [] for b in BUILDS}
                for r in range(ROUNDS):
                    for b in BUILDS:
                        trace = ours(folder, b, problem, most)
                        assert [l for _, l in trace] == [l for _, l in long[:most]], "nmf.py: the builds differ"
                        times[b].append([s for s, _ in trace])
                    for s in solvers if r else []:  # the first round was timed above
                        again = peer(problem, x, u, v, beta, s, ITERATIONS[0])
                        ends[s][ITERATIONS[0]] = min(ends[s][ITERATIONS[0]], again)
                times = {b: np.min(t, axis=0) for b, t in times.items()}
                for t in tables:
                    seconds = {n: min(ends[t.solver][n][0], n / ITERATIONS[0] * ends[t.solver][ITERATIONS[0]][0]) for n in ITERATIONS}
                    t.enter(f"{name} {x.shape[0]}×{x.shape[1]}", k, seconds, epochs[t.solver], times)
                print(title, name, k, file=sys.stderr, flush=True)
                if k == 10:
                    points = {}
                    for s in solvers:
                        rate = ends[s][ITERATIONS[0]][0] / ITERATIONS[0]
                        points[s] = ([] if s == "RcppML" else [(0, loss(x, u, v, beta))]) + [(n * rate, peer(problem, x, u, v, beta, s, n)[1]) for n in (10, 20, 50, 100)]
                        points[s] += [(n * rate, ends[s][n][1]) for n in ITERATIONS]
                    losses = [l for _, l in long]
                    curves[beta, name] = (points, list(zip(times["native"], losses)), list(zip(times["purego"], losses)))
        for t in tables:
            t.write()
    plot(curves)


def plot(curves):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "quantmf"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SETS), figsize=(16, 6), squeeze=False)
    colors, lines = {}, {}
    for row, beta in enumerate((1, 2)):
        for column, name in enumerate(SETS):
            a = axes[row][column]
            points, best, go = curves[beta, name]
            peers = [(p, solver if solver == "RcppML" else f"scikit-learn, {solver}", "o-") for solver, p in points.items()]
            for trace, label, style in peers + [(best, "FitNMF", "-"), (go, "FitNMF, Go alone", "--")]:
                # A method has the same colour in all panels.
                color = colors.setdefault(label, f"C{len(colors)}")
                (line,) = a.plot([max(s, 1e-4) for s, _ in trace], [l for _, l in trace], style, color=color, label=label, markersize=3)
                lines.setdefault(label, line)
            low = min(l for _, l in best)
            a.set(xscale="log", ylim=(0.98 * low, 1.8 * low), title=f"{name}, {'KL' if beta == 1 else 'Frobenius'}", xlabel="seconds")
    axes[0][0].set_ylabel("mean loss, k = 10")
    figure.legend(lines.values(), lines, loc="lower center", ncol=len(lines), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(here.parent / "docs" / "measurements" / "nmf.svg", metadata={"Date": None})


main()
