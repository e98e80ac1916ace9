"""Compares the accuracy of this package and of other software on the same problems of one row, and fills the
tables of docs/measurements/peers.md.

    bench/run peers [QN.json]

QN.json holds results of R for the limit ε -> 0; without it these rows are left out. All is in float64 but where a
row says otherwise.
"""

import functools
import json
import pathlib
import subprocess
import sys
import warnings

from harness import arguments, ask, build, fill, pages, root, table, versions

sys.path.insert(0, str(root / "reference"))

import jax

if "float32" not in sys.argv:
    jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
from ott.geometry import geometry
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn
from ott.tools import soft_sort

warnings.filterwarnings("ignore")
ROWS = 3  # problems of a size
SIZES = [(80, 8), (256, 16)]
EPSILONS = [1e-1, 1e-2, 1e-3, 1e-4]


def ours(problems):
    """Answers of this package."""
    return ask(contender(), rows=problems)


@functools.cache
def contender():
    return build(["AVX-512"])["AVX-512"]


def truth(p):
    """T, S and the gradients of <zt,T> and <zs,S> in 160 digits, rounded."""
    import cases
    from mpmath import mp, mpf

    mp.dps = cases.DIGITS
    exact = lambda v: [mpf(float(t)) for t in v]
    near = lambda v: np.array([float(t) for t in v])
    s = cases.Problem({"squash": "none", "midpoint": False, "iterations": 0},
                      {"x": exact(p["x"]), "y": exact(p["y"]), "q": exact(p["q"]), "eps": mpf(p["eps"]),
                       "a": cases.normalise(exact(p["a"])), "b": cases.normalise(exact(p["b"]))})
    t, g = s.vjp_T(exact(p["zt"])), s.vjp_S(exact(p["zs"]))
    return {"T": near(s.T()), "S": near(s.S()), "Tx": near(t["x"]), "Tb": near(t["b"]), "Sx": near(g["x"])}


def problem(rng, n, m, eps):
    """A row that stands where its squash has put it, as all software gets it."""
    raw = rng.normal(size=n)
    x = 1 / (1 + np.exp(-(raw - raw.mean()) / raw.std() * np.pi / np.sqrt(3)))
    b = np.exp(0.5 * rng.normal(size=m))
    return {"x": x, "a": np.ones(n) / n, "b": b / b.sum(), "y": np.linspace(0, 1, m), "q": np.cumsum(rng.random(m)),
            "eps": eps, "squash": "none", "zt": rng.normal(size=n), "zs": rng.normal(size=m)}


@functools.partial(jax.jit, static_argnames=("threshold", "most"))
def ott_row(x, a, b, y, q, eps, zt, zs, threshold, most):
    def solve(x, b):
        geom = geometry.Geometry(cost_matrix=(x[:, None] - y[None, :]) ** 2, epsilon=eps)
        return sinkhorn.Sinkhorn(threshold=threshold, max_iterations=most)(
            linear_problem.LinearProblem(geom, a=a, b=b))

    def mapped(x, b):
        out = solve(x, b)
        T = out.apply(q, axis=1) / a
        return zt @ T, (T, out.n_iters, out.converged)

    def ordered(x, b):
        S = solve(x, b).apply(x, axis=0) / b
        return zs @ S, S

    (_, (T, iterations, converged)), (Tx, Tb) = jax.value_and_grad(mapped, (0, 1), has_aux=True)(x, b)
    (_, S), Sx = jax.value_and_grad(ordered, has_aux=True)(x, b)
    return {"T": T, "S": S, "Tx": Tx, "Tb": Tb - b @ Tb, "Sx": Sx, "iterations": iterations, "converged": converged}


def ott(p, threshold, most):
    out = ott_row(*(jnp.asarray(p[k]) for k in ("x", "a", "b", "y", "q", "eps", "zt", "zs")), threshold=threshold,
                  most=most)
    return {k: np.asarray(v) for k, v in out.items()}


def pot(p, most=200000):
    """POT's plan at a threshold of 1e-11; it has no implicit gradient of a numpy problem."""
    import ot

    C = (p["x"][:, None] - p["y"][None, :]) ** 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        P, log = ot.sinkhorn(p["a"], p["b"], C, p["eps"], stopThr=1e-11, numItermax=most, log=True)
    return {"T": P @ p["q"] / p["a"], "S": P.T @ p["x"] / p["b"], "iterations": int(log["niter"]) + 1,
            "converged": not told}


def number(v):
    if v is None:
        return ""
    return "NaN" if np.isnan(v) else "0" if v == 0 else "%.0e" % v


def worst(got, want, *keys, relative=False):
    """Largest error over problems; None where a peer gives no such thing."""
    if not all(k in got[0] for k in keys):
        return None
    return np.max([np.max(np.abs(np.asarray(g[k]) - w[k])) / (np.max(np.abs(w[k])) if relative else 1)
                   for g, w in zip(got, want) for k in keys])


def accuracy():
    lines = []
    for eps in EPSILONS:
        problems = []
        for n, m in SIZES:
            rng = np.random.default_rng([n, m, int(round(1 / eps))])
            problems += [problem(rng, n, m, eps) for _ in range(ROWS)]
        want = [truth(p) for p in problems]
        own = [{"T": a["T"], "S": a["S"], "Tx": a["GradT"]["X"], "Tb": a["GradT"]["B"], "Sx": a["GradS"]["X"],
                "iterations": a["Iterations"], "converged": a["Converged"]} for a in ours(problems)]
        for name, got in (("quantmf, 1e-9 (default)", own),
                          ("ott-jax, 1e-3 (default)", [ott(p, 1e-3, 2000) for p in problems]),
                          ("ott-jax, 1e-11", [ott(p, 1e-11, 400000) for p in problems]),
                          ("POT, 1e-11", [pot(p) for p in problems])):
            counts = sorted(int(g["iterations"]) for g in got)
            flags = {bool(g["converged"]) for g in got}
            lines.append(["" if lines and name != "quantmf, 1e-9 (default)" else "%g" % eps, name,
                          number(worst(got, want, "T")), number(worst(got, want, "S")),
                          number(worst(got, want, "Tx", "Tb", relative=True)),
                          number(worst(got, want, "Sx", relative=True)),
                          "%d–%d" % (counts[0], counts[-1]) if counts[0] < counts[-1] else counts[0],
                          "yes" if flags == {True} else "no" if flags == {False} else "some"])
    return table(["ε", "software, tolerance", "T", "S", "gradients of T", "of S", "iterations", "says it converged"],
                 lines)


def differences(problems, key, want):
    """Largest difference of an output from other values; NaN where there are no problems."""
    return number(max((np.max(np.abs(np.array(g[key]) - w)) for g, w in zip(ours(problems), want)), default=np.nan))


def limit(file):
    import ot
    import scipy.stats

    rng = np.random.default_rng(5)
    plans = [{**problem(rng, n, m, 0.0), "plan": True, "a": (a := rng.random(n)) / a.sum(), "zt": None, "zs": None}
             for n, m in SIZES for _ in range(ROWS)]
    exact = [ot.emd(p["a"], p["b"], (p["x"][:, None] - p["y"][None, :]) ** 2) for p in plans]
    v = [rng.normal(size=n) for n in (1, 2, 7, 80, 256)]
    v += [np.round(u, 1) for u in v] + [rng.integers(0, 4, size=50).astype(float)]
    rows = [{"x": u, "eps": 0.0} for u in v]
    lines = [["plan", "POT `emd`, random a, b", differences(plans, "Plan", exact)],
             ["S; R", "`numpy.sort`; `scipy.stats.rankdata`, ties among them",
              differences(rows, "S", [np.sort(u) for u in v]) + "; "
              + differences(rows, "R", [scipy.stats.rankdata(u) for u in v])]]
    if file:
        r = json.loads(pathlib.Path(file).read_text())
        both = []
        for key, of in (("use_target", "same_length"), ("use_target_ties", "m8")):
            target = np.array(r[key][of]["target"])
            both.append(differences([{"x": np.array(c), "q": target, "eps": 0.0} for c in zip(*r[key]["x"])], "T",
                                    [np.array(c) for c in zip(*r[key][of]["result"])]))
        lines.append(["T", "R, `normalize.quantiles.use.target`: no ties; runs of up to four", "; ".join(both)])
        for key, label in (("preprocessCore_normalize_quantiles", "preprocessCore `normalize.quantiles`"),
                           ("limma_ties_true", "limma `normalizeQuantiles(ties=TRUE)`")):
            runs = {False: ([], []), True: ([], [])}  # whether more than two samples are equal
            for c in map(r["cases"].get, ("wikipedia_4x3", "continuous_12x4", "integer_ties_15x5", "many_zeros_10x3",
                                          "constant_column_6x3")):
                columns = [np.array(u, float) for u in zip(*c["x"])]
                if key == "limma_ties_true" and any(len(np.unique(u)) < len(u) for u in columns):
                    continue  # limma's target is one of interpolated ranks there
                target = np.mean([np.sort(u) for u in columns], axis=0)
                for u, w in zip(columns, zip(*c[key])):
                    problems, want = runs[bool(np.max(np.unique(u, return_counts=True)[1]) > 2)]
                    problems.append({"x": u, "q": target, "eps": 0.0})
                    want.append(np.array(w))
            lines.append(["T", label + ": at most two equal; three and more",
                          "; ".join(differences(p, "T", w) if p else "–" for p, w in runs.values())])
    return table(["at ε = 0", "compared with", "largest difference"], lines)


def attempt(f):
    """f's result as text, or the error it raises."""
    try:
        return f()
    except Exception as e:  # whatever a peer raises is the finding
        return "raises " + type(e).__name__


def float32():
    """Printed by a process of its own: how many gradients raise in float32, jax's default."""
    rng = np.random.default_rng(9)
    raised = count = 0
    for f in (soft_sort.ranks, soft_sort.sort,
              lambda v, num_targets, epsilon: soft_sort.quantile_normalization(
                  v, jnp.linspace(0, 1, num_targets), epsilon=epsilon)):
        for n, m in ((20, 5), (80, 8), (256, 16)):
            for eps in (1e-1, 1e-2, 1e-3):
                x = jnp.asarray(rng.normal(size=n), jnp.float32)
                count += 1
                g = attempt(lambda: jax.grad(lambda v: jnp.sum(f(v, num_targets=m, epsilon=eps) ** 2))(x))
                raised += isinstance(g, str)
    print("%d of %d settings raise" % (raised, count))


def wrong():
    """What each software does where a problem is hard or wrong."""
    import ot
    import scipy.stats

    rng = np.random.default_rng(3)
    x = rng.normal(size=256)
    unit = lambda v: 1 / (1 + np.exp(-(v - v.mean()) / v.std()))
    error = lambda p: ours([p])[0]["Error"].split(":")[0]
    p = {"x": unit(x), "a": np.ones(256) / 256, "b": np.ones(16) / 16, "y": np.linspace(0, 1, 16),
         "q": np.linspace(0, 1, 16), "eps": 1e-4, "squash": "none", "zt": rng.normal(size=256), "zs": np.ones(16)}
    want, low, own = truth(p), ott(p, 1e-3, 2000), ours([p])[0]
    lines = [["does not converge (256 × 16, ε = 1e-4)",
              "T off by %s, ∂T/∂x by %.0f %%; `soft_sort` is silent" % (
                  number(worst([low], [want], "T")), 100 * worst([low], [want], "Tx", relative=True)),
              "silent" if pot(dict(p, eps=1e-3), 100)["converged"] else "warns",
              ("converges" if own["Converged"] else "says so") + "; an error with WithStrict: "
              + error(dict(p, maxIterations=1, eps=1e-2, strict=True))]]
    v = rng.normal(size=(200, 50))
    out = lambda s: np.sum(np.maximum(s.max(1) - v.max(1), v.min(1) - s.min(1)) > 0)
    lines.append(["soft sort outside [min x, max x], ε = 1e-4",
                  "%d of 200 rows" % out(np.array(soft_sort.sort(jnp.asarray(v), axis=-1, epsilon=1e-4))), "–",
                  "%d of 200" % out(np.array([g["S"] for g in ours([{"x": u, "eps": 1e-4} for u in v])]))])
    u, levels = rng.random(100), [0.8, 0.2, 0.5]
    show = lambda w: ", ".join("%.2f" % t for t in w)
    lines.append(["quantiles at levels 0.8, 0.2, 0.5 of a uniform sample",
                  show(np.array(soft_sort.quantile(jnp.asarray(u), q=jnp.array(levels), epsilon=1e-3))), "–",
                  show(ours([{"x": u, "levels": levels, "eps": 1e-3}])[0]["Quantiles"])])
    u = rng.normal(size=20)
    off = lambda r: "off by %.2g" % np.max(np.abs(np.asarray(r) - scipy.stats.rankdata(u)))
    cost, even = (unit(u)[:, None] - np.linspace(0, 1, 20)[None, :]) ** 2, np.ones(20) / 20
    for eps in (0.0, 1e-6, -0.01):
        a = ours([{"x": u, "eps": eps}])[0]
        lines.append(["ranks at ε = %g" % eps,
                      attempt(lambda: off(np.array(soft_sort.ranks(jnp.asarray(u), epsilon=eps)) + 1)),
                      attempt(lambda: off(20 * ot.sinkhorn(even, even, cost, eps) @ np.arange(1, 21))),
                      a["Error"].split(":")[0] or off(a["R"])])
    gradient = lambda f, at: attempt(lambda: number(float(jnp.max(jnp.abs(jax.grad(f)(at))))))
    a = ours([{"x": [3.7] * 8, "b": [1.0] * 4, "q": [0.0, 1.0, 2.0, 3.0], "zt": [1.0] + [0.0] * 7}])[0]
    lines.append(["gradient at a constant row",
                  gradient(lambda w: soft_sort.ranks(w, num_targets=4)[0], jnp.full(8, 3.7)), "–",
                  number(max(map(abs, a["GradT"]["X"]))) + " (as defined)"])
    done = subprocess.run([sys.executable, __file__, "float32"], capture_output=True, text=True)
    lines.append(["gradients in float32, jax's default", done.stdout.strip(), "–", "float64 only"])
    g = gradient(lambda w: soft_sort.sort(w)[0], jnp.asarray(u))
    lines.append(["gradient of a soft sort at its defaults", g if g.startswith("raises") else "finite", "–",
                  "finite" if np.isfinite(ours([{"x": u, "zs": np.eye(20)[0]}])[0]["GradS"]["X"]).all() else "not"])
    lines.append(["empty x", attempt(lambda: str(np.array(soft_sort.ranks(jnp.zeros(0))))),
                  attempt(lambda: str(ot.sinkhorn(np.zeros(0), np.ones(2) / 2, np.zeros((0, 2)), 0.1))),
                  error({"x": []})])
    return table(["", "ott-jax", "POT", "quantmf"], lines)


def main():
    if "float32" in sys.argv:
        return float32()
    file = next(iter(arguments()), None)
    fill(pages / "peers.md", {"accuracy": accuracy(), "limit": limit(file), "wrong": wrong() + "\n" + versions(
        "ott-jax", "jax", "POT", "numpy", "scipy") + ".\n"})


if __name__ == "__main__":
    main()
