"""Times this package and other software in turns on one core, and fills the tables of docs/measurements/speed.md and
its plot.

    bench/run [quick] [FOLDER]

FOLDER has toy-std1.tsv.gz and official.json: the paper's synthetic problem, and losses and times of the authors'
code on it. Without it the page has no fit to the authors' loss. Software that is not installed is left out.
"""

import functools
import gzip
import json
import os
import pathlib
import tempfile
import time
import warnings

from harness import (BUILDS, QUICK, Rounds, arguments, ask, benchmark, build, digits, fill, fit, machine,
                     pages, plot, table, versions, work)

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.update(XLA_FLAGS="--xla_cpu_multi_thread_eigen=false", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np
from ott.geometry import geometry
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn

from peers import problem  # which lets jax compute in float64

jax.config.update("jax_compilation_cache_dir", str(work / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
warnings.filterwarnings("ignore")

BATCH, ROUNDS = (8, 1) if QUICK else (64, 3)
SETTINGS = [(256, 16, 1e-1), (256, 16, 1e-2), (256, 16, 1e-3), (80, 8, 1e-2), (500, 16, 1e-2)]
SHAPES = [(500, 256, 10), (6000, 304, 10), (2000, 2000, 20), (500, 256, 64)]
if QUICK:
    SETTINGS, SHAPES = SETTINGS[:2], SHAPES[:1]
OTT = {"ott-jax, 1e-3": (1e-3, 2000), "ott-jax, 1e-9": (1e-9, 200000)}
OTHER = ["scikit-learn", "NumPy", "torch"]


def timed(call, per, least=0.15):
    """Returns the seconds of a unit, of which a call has so many."""
    begin, done = time.perf_counter(), 0
    while not done or time.perf_counter() - begin < least:
        call()
        done += 1
    return (time.perf_counter() - begin) / done / per


def ott_function(setting, lse, how, threshold, most):
    """Returns T of a batch of rows, and its gradients in x, b and q, in lock step or one after the other."""
    n, m, eps = setting
    y, a = jnp.linspace(0, 1, m), jnp.full(n, 1 / n)

    def forward(x, b, q, z):
        geom = geometry.Geometry(cost_matrix=(x[:, None] - y[None, :]) ** 2, epsilon=eps)
        solver = sinkhorn.Sinkhorn(threshold=threshold, max_iterations=most, lse_mode=lse)
        return z @ (solver(linear_problem.LinearProblem(geom, a=a, b=b)).apply(q, axis=1) / a)

    row = jax.value_and_grad(forward, (0, 1, 2))
    return jax.jit(jax.vmap(row)) if how == "vmap" else jax.jit(lambda *v: jax.lax.map(lambda r: row(*r), v))


def pot(rows):
    import ot

    for p in rows:
        C = (p["x"][:, None] - p["y"][None, :]) ** 2
        ot.sinkhorn(p["a"], p["b"], C, p["eps"], stopThr=1e-9, numItermax=100000) @ p["q"]


def scikit(X, W, H, updates):
    from sklearn.decomposition import non_negative_factorization

    non_negative_factorization(X, W=W.copy(), H=H.copy(), n_components=W.shape[1], init="custom", solver="mu",
                               beta_loss="kullback-leibler", max_iter=updates, tol=0)


def textbook(lib, X, U, V, updates):
    """The formulas of the textbook by NumPy or torch, with buffers that are used again."""
    copy = (lambda v: v.clone()) if lib.__name__ == "torch" else (lambda v: v.copy())
    divide = getattr(lib, "div", None) or lib.divide
    U, V, R = copy(U), copy(V), lib.empty_like(X)
    for _ in range(updates):
        lib.matmul(U, V, out=R)
        divide(X, R, out=R)
        V *= (U.T @ R) / U.sum(0)[:, None]
        lib.matmul(U, V, out=R)
        divide(X, R, out=R)
        U *= (R @ V.T) / V.sum(1)


def add_rows(rounds, contenders, tests):
    for setting in SETTINGS:
        n, m, eps = setting
        rng = np.random.default_rng([n, m, int(round(1 / eps))])
        rows = [problem(rng, n, m, eps) for _ in range(BATCH)]
        args = [jnp.asarray(np.stack([p[k] for p in rows])) for k in ("x", "b", "q", "zt")]
        for name, (threshold, most) in OTT.items():
            for lse in (True, False):
                for how in ("vmap", "one by one"):
                    f = ott_function(setting, lse, how, threshold, most)
                    jax.block_until_ready(f(*args))
                    rounds.add((setting, name, lse, how),
                               lambda f=f, args=args: timed(lambda: jax.block_until_ready(f(*args)), BATCH))
        rounds.add((setting, "POT, 1e-9, forward alone"), lambda r=rows[:4]: timed(lambda: pot(r), 4))
        for b in BUILDS:
            rounds.add((setting, "cold, " + b), lambda b=b, r=rows: ask(contenders[b], rows=r, repeat=0.2))
            pattern = "^BenchmarkWarmRow$/^%dx%d,eps=1e%d$" % (n, m, round(np.log10(eps)))
            rounds.add((setting, "warm, " + b), lambda b=b, p=pattern: list(
                benchmark(tests[b], p, "200ms").values())[0]["ns/op"] * 1e-9)
        if setting == (256, 16, 1e-2):
            try:
                import torch
                import torchsort
            except ImportError:
                continue
            x = torch.tensor(np.stack([p["x"] for p in rows]), dtype=torch.float64, requires_grad=True)
            rounds.add((setting, "torchsort, float64"), lambda x=x: timed(lambda: torchsort.soft_rank(
                x, regularization="l2", regularization_strength=0.1).backward(torch.ones_like(x)), BATCH))


def add_updates(rounds, contenders, folder):
    for shape in SHAPES:
        d, n, k = shape
        # an update takes about as long as k components and work of a cell that takes as long as eight
        updates = max(6, round(3.5e8 / (d * n * (k + 8))))
        rng = np.random.default_rng(d)
        X = np.exp(rng.normal(size=(d, n)))
        scale = np.sqrt(X.mean() / k)
        U, V = scale * (0.5 + rng.random((d, k))), scale * (0.5 + rng.random((k, n)))
        files = {}
        for name, v in (("X", X), ("U", U), ("V", V)):
            files[name] = str(folder / ("%s%dx%dx%d" % (name, *shape)))
            v.tofile(files[name])
        turned = [np.ascontiguousarray(v.T) for v in (X, V, U)]
        for way, a in (("", (X, U, V)), ("transposed", turned)):
            rounds.add((shape, "scikit-learn", way), lambda a=a, u=4 * updates: timed(lambda: scikit(*a, u), u))
        rounds.add((shape, "NumPy"), lambda a=(X, U, V), u=updates: timed(lambda: textbook(np, *a, u), u))
        try:
            import torch

            torch.set_num_threads(1)
            tensors = [torch.tensor(v) for v in (X, U, V)]
            rounds.add((shape, "torch"), lambda a=tensors, u=updates: timed(lambda: textbook(torch, *a, u), u))
        except ImportError:
            pass
        for b in [*BUILDS, "wasm"] if shape == SHAPES[0] else BUILDS:
            rounds.add((shape, b), lambda b=b, f=files, s=shape, u=updates: update(contenders[b], f, s, u))


def update(binary, files, shape, updates):
    d, n, k = shape
    got = fit(binary, D=d, N=n, K=k, Method="NMF", Updates="multiplicative", Epochs=updates, Warm=0.1, **files)["Seconds"]
    return (got[-1] - got[0]) / (updates - 1)


def add_epochs(rounds, contenders, tests, folder, toy):
    for name in ("QMF,500x256x10,m=16", "QMFQ,160x80x8,m=8,100updates"):
        for b in BUILDS:
            rounds.add((name, b), lambda b=b, name=name: list(benchmark(
                tests[b], "^BenchmarkEpoch$/^%s$" % name, "20x").values())[0]["ns/op"] * 1e-9)
    if toy:
        with gzip.open(toy / "toy-std1.tsv.gz", "rt") as f:
            next(f)
            x = np.array([[float(v) for v in line.rstrip("\n").split("\t")[1:]] for line in f])
        x.tofile(folder / "toy")
        for b in BUILDS:
            rounds.add(("toy", b), lambda b=b: fit(contenders[b], D=x.shape[0], N=x.shape[1], X=str(folder / "toy"), K=8,
                                                   Levels=8, Method="QMF", Settings="scores", Epochs=20)["Total"])


class Results:
    def __init__(self, rounds):
        self.rounds = rounds

    def best(self, group, name):
        """Returns the key of the fastest form of a contender, None where there is none."""
        return self.rounds.fastest([k for k in self.rounds.times if k[:2] == (group, name)])

    def cell(self, group, name, unit):
        key = self.best(group, name)
        return digits(self.rounds.median(key) / unit) if key else ""

    def ratios(self, group, theirs, ours=""):
        """Returns how many times faster each build is than the fastest form of a contender."""
        key = self.best(group, theirs)
        return [digits(self.rounds.ratio(key, (group, ours + b))) if key else "" for b in BUILDS]


def tables(r, official):
    title = lambda s: "%d × %d, %g" % s
    ratios = []
    for setting in [s for s in SETTINGS if s[:2] == (256, 16) and s[2] < 0.1]:
        for name in OTT:
            ratios.append(["cold row, ε = %g, as %s" % (setting[2], name.replace(", ", " at "))]
                          + r.ratios(setting, name, "cold, "))
    for name in ("scikit-learn", "torch"):
        for shape in SHAPES:
            ratios.append(["update of NMF %d × %d, k = %d, as %s" % (*shape, name)] + r.ratios(shape, name))
    theirs = official and official["seconds per epoch, one core"]
    if theirs:
        ratios.append(["fit of toy-std1 to the authors' loss, as their code compiled"] + [
            digits(1000 * theirs["toy QMF"]["compiled graph"] / r.rounds.median(("toy", b))) for b in BUILDS])
    ratios.append(["update of NMF 500 × 256, k = 10: wasm in node, as Go alone", "", "",
                   digits(r.rounds.ratio((SHAPES[0], "Go alone"), (SHAPES[0], "wasm")))])
    rows = [[name] + [r.cell(s, name, 1e-6) for s in SETTINGS] for name in [
        *OTT, "POT, 1e-9, forward alone", "torchsort, float64", *("cold, " + b for b in BUILDS),
        *("warm, " + b for b in BUILDS)]]
    updates = [[name] + [r.cell(s, name, 1e-3) for s in SHAPES] for name in [*OTHER, *BUILDS]]
    epochs = [["epoch of " + n] + [r.cell(g, b, 1e-3) for b in BUILDS] + t for n, g, t in (
        ("QMF, 500 × 256, k = 10, m = 16", "QMF,500x256x10,m=16", ["", ""]),
        ("QMFQ, 160 × 80, k = 8, m = 8, 100 updates", "QMFQ,160x80x8,m=8,100updates",
         [digits(1e3 * theirs["toy QMFQ"][k]) for k in ("compiled graph", "as published")] if theirs else ["", ""]))]
    if theirs:
        epochs.append(["fit of toy-std1 to the authors' loss"] + [r.cell("toy", b, 1e-3) for b in BUILDS] + [
            digits(1e6 * theirs["toy QMF"][k]) for k in ("compiled graph", "as published (eager)")])
    return {
        "ratios": table(["times as fast", *BUILDS], ratios),
        "rows": table(["µs a row: samples × levels, ε", *map(title, SETTINGS)], rows),
        "updates": table(["ms an update", *("%d × %d × %d" % s for s in SHAPES)], updates),
        "epochs": table(["ms", *BUILDS, "the authors, compiled", "as published"], epochs) + "\n%s; %s.\n" % (
            machine(), versions("ott-jax", "jax", "POT", "scikit-learn", "numpy")),
    }


def draw(r, figure, axes):
    ink = dict(zip(["other", *BUILDS], (["#8a8a8a", "#5a5a5a", "#b8b8b8"], "#08519c", "#4292c6", "#9ecae1")))
    for a, groups, names, unit, title in (
            (axes[0], SETTINGS[:3], [*OTT, "POT, 1e-9, forward alone", *("cold, " + b for b in BUILDS)], 1e-6,
             "256 samples onto 16 levels, with gradients: µs a row"),
            (axes[1], SHAPES[:3], [*OTHER, *BUILDS], 1e-3, "NMF under KL: ms an update")):
        for i, name in enumerate(names):
            keys = [r.best(g, name) for g in groups]
            at = [j + (i - (len(names) - 1) / 2) * 0.8 / len(names) for j in range(len(groups))]
            a.bar(at, [r.rounds.median(k) / unit if k else 0 for k in keys], 0.74 / len(names), label=name,
                  color=ink.get(name.removeprefix("cold, "), ink["other"][i % 3]))
        a.set_yscale("log")
        a.set_xticks(range(len(groups)), ["%g × %g, %g" % g for g in groups])
        a.set_title(title, fontsize=10, loc="left")
        a.legend(frameon=False, fontsize=8, ncols=2)
    figure.tight_layout()


def main():
    toy = next(map(pathlib.Path, arguments()), None)
    official = toy and json.loads((toy / "official.json").read_text())
    contenders, tests = build(wasm=True), build(test=".")
    folder = pathlib.Path(tempfile.mkdtemp())
    rounds = Rounds()
    add_rows(rounds, contenders, tests)
    add_updates(rounds, contenders, folder)
    add_epochs(rounds, contenders, tests, folder, toy)
    r = Results(rounds.run(ROUNDS))
    fill(pages / "speed.md", tables(r, official), record=[[*map(str, k), *t.values()] for k, t in rounds.times.items()])
    plot(pages / "speed.png", functools.partial(draw, r), nrows=1, ncols=2, figsize=(11, 4.2))


main()
