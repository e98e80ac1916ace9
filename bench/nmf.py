"""Seconds to the loss that scikit-learn's solvers of NMF reach, from the same start.

    bench/.work/env/bin/python bench/nmf.py FOLDER [quick]

FOLDER has the matrices of paper/study/, which are public. For each of five, and k of 5, 10 and 20,
one after the other on one thread: scikit-learn's `mu` under KL and `cd` under Frobenius,
200 and 1000 iterations without a stopping rule, and FitNMF of this package in three builds,
by Newton's method. The time of FitNMF to a loss is that of the whole call up to the
first epoch at or below it. Writes docs/measurements/nmf.svg, and the tables to standard
output. Needs Go, numpy, scikit-learn and matplotlib.
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


def peer(x, u, v, beta, iterations):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b, _ = non_negative_factorization(
            x, W=u.copy(), H=v.copy(), n_components=u.shape[1], init="custom", tol=0, max_iter=iterations,
            solver="mu" if beta == 1 else "cd", beta_loss="kullback-leibler" if beta == 1 else "frobenius")
    return time.perf_counter() - start, loss(x, a, b, beta)


def ours(folder, build, problem, updates="newton"):
    out = subprocess.run([str(folder / build), "-test.run", "TestLosses$", "-test.v"], capture_output=True, text=True, check=True,
                         env=dict(os.environ, QUANTMF_NMF=str(problem), QUANTMF_UPDATES=updates, GOMAXPROCS="1")).stdout
    return [tuple(map(float, line.split()[1:])) for line in out.splitlines() if line.startswith("loss ")]


def reach(trace, target):
    for seconds, value in trace:
        if value <= target * (1 + 1e-12):
            return seconds
    return math.nan


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    build(folder)
    curves = {}
    for beta, solver in ((1, "mu"), (2, "cd")):
        loss_name = "KL" if beta == 1 else "Frobenius"
        cells = ["set", "k"]
        for n in ITERATIONS:
            cells += [f"`{solver}`, {n} iterations, s"] + [f"{b}: times faster" for b in BUILDS.values()] + ["epochs"]
        print(f"\n## {loss_name}, scikit-learn's `{solver}`\n\n| " + " | ".join(cells) + " |\n|" + "---|" * len(cells), flush=True)
        gains = {(n, b): [] for n in ITERATIONS for b in BUILDS}
        for name, file in SETS.items():
            x = load(file)
            for k in RANKS:
                rng = np.random.default_rng(k)
                scale = math.sqrt(x.mean() / k)
                u, v = scale * (0.5 + rng.random((x.shape[0], k))), scale * (0.5 + rng.random((k, x.shape[1])))
                problem = folder / "problem"
                head = np.array([*x.shape, k, beta, EPOCHS[beta]], dtype=float)
                problem.write_bytes(b"".join(np.ascontiguousarray(m).tobytes() for m in (head, x, u, v)))
                first = loss(x, u, v, beta)
                trace = {b: ours(folder, b, problem) for b in BUILDS}
                row, points = [f"{name} {x.shape[0]}×{x.shape[1]}", str(k)], [(0, first)]
                for n in ITERATIONS:
                    seconds, target = peer(x, u, v, beta, n)
                    points.append((seconds, target))
                    row.append(f"{seconds:.2f}")
                    for b in BUILDS:
                        gain = seconds / reach(trace[b], target)
                        gains[n, b].append(gain)
                        row.append("not reached" if math.isnan(gain) else f"{gain:.1f}")
                    steps = [e for e, (_, value) in enumerate(trace["native"]) if value <= target * (1 + 1e-12)]
                    row.append(str(steps[0] + 1) if steps else "–")
                print("| " + " | ".join(row) + " |", flush=True)
                if k == 10:
                    for n in (10, 20, 50, 100):
                        points.append(peer(x, u, v, beta, n))
                    points.append((0, first))
                    curves[beta, name] = (sorted(set(points)), trace["native"], trace["purego"])
        row = ["geometric mean of those reached; least", ""]
        for n in ITERATIONS:
            row.append("")
            for b in BUILDS:
                reached = [g for g in gains[n, b] if not math.isnan(g)]
                row.append(f"{math.exp(np.mean(np.log(reached))):.1f}; {min(reached):.1f}; {len(reached)} of {len(gains[n, b])}" if reached else "–")
            row.append("")
        print("| " + " | ".join(row) + " |")
    plot(curves)


def plot(curves):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "quantmf"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SETS), figsize=(16, 6), squeeze=False)
    for row, (beta, solver) in enumerate(((1, "mu"), (2, "cd"))):
        for column, name in enumerate(SETS):
            a = axes[row][column]
            points, best, go = curves[beta, name]
            for trace, label, style in ((points, f"scikit-learn, {solver}", "o-"), (best, "FitNMF", "-"), (go, "FitNMF, Go alone", "--")):
                a.plot([max(s, 1e-4) for s, _ in trace], [l for _, l in trace], style, label=label, markersize=3)
            low = min(l for _, l in best)
            a.set(xscale="log", ylim=(0.98 * low, 1.8 * low), title=f"{name}, {'KL' if beta == 1 else 'Frobenius'}", xlabel="seconds")
    axes[0][0].set_ylabel("mean loss, k = 10")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(here.parent / "docs" / "measurements" / "nmf.svg", metadata={"Date": None})


main()
