"""Times this package and its peers in turn, and writes docs/measurements/speed.md and its plot.

Called by bench/run, which has built the Go tests into bench/.work/bin and keeps
everything on one core. A round measures every contender once, in the same
order; a ratio is the median over rounds of ratios within a round.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

here = pathlib.Path(__file__).resolve().parent
root = here.parent
sys.path.insert(0, str(root / "reference" / "peers"))

import jax
import jax.numpy as jnp
import numpy as np
from ott.geometry import geometry
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn

import compare  # in float64, unless the arguments have "float32"

# The code that jax compiles is kept, because compiling takes longer than most of the timed calls.
jax.config.update("jax_compilation_cache_dir", str(here / ".work" / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

QUICK = "quick" in sys.argv
TOY = next((pathlib.Path(word).resolve() for word in sys.argv[1:] if word not in ("quick", "float32")), None)
BATCH = 8 if QUICK else 64  # rows given to a peer at once
ROUNDS = 1 if QUICK else 3
SETTINGS = [(256, 16, 1e-1), (256, 16, 1e-2), (256, 16, 1e-3), (80, 8, 1e-2), (500, 16, 1e-2)]
MAIN = (256, 16, 1e-2)
SHAPES = [(500, 256, 10), (6000, 304, 10), (2000, 2000, 20)]
RANKS = [(500, 256, k) for k in (1, 3, 5, 32, 64)]
if QUICK:
    SETTINGS, SHAPES, RANKS = SETTINGS[:2], SHAPES[:1], RANKS[-1:]
BUILDS = ["purego", "avx2", "native"]
NAMES = {"purego": "purego", "avx2": "AVX2", "native": "AVX-512"}
THRESHOLDS = [(1e-3, 2000), (1e-9, 200000)]


def rows_of(setting):
    n, m, eps = setting
    rng = np.random.default_rng([n, m, int(round(1 / eps))])
    return [compare.problem(rng, n, m, eps) for _ in range(BATCH)]


def label(setting):
    """Returns the name of a setting in Go's benchmarks."""
    n, m, eps = setting
    return "%dx%d,eps=1e%d" % (n, m, round(np.log10(eps)))


# --- contenders -----------------------------------------------------------------


class Contender:
    """A call that is timed once a round; warm() makes it once before the first round."""

    def __init__(self, group, name, call, per=1.0, warm=True):
        self.group, self.name, self.call, self.per = group, name, call, per
        self.cold = warm
        self.times, self.takes = {}, 0.0  # seconds of a unit, by round; seconds of a call

    def warm(self):
        if self.cold:
            self.call()

    def measure(self, turn):
        if self.takes > 2 and turn % 3:  # the slowest contenders are timed every third round
            return
        start = time.perf_counter()
        done = 0
        while done == 0 or time.perf_counter() - start < 0.15:
            self.call()
            done += 1
        self.takes = (time.perf_counter() - start) / done
        self.times[turn] = self.takes / self.per


def ott_function(setting, dtype, lse, how, threshold, most, gradient=True):
    """Returns a function that computes T, its gradients in x, b, q and the number of iterations of a batch of rows."""
    n, m, eps = setting
    y, a = jnp.linspace(0, 1, m, dtype=dtype), jnp.full(n, 1 / n, dtype=dtype)

    def forward(x, b, q, z):
        geom = geometry.Geometry(cost_matrix=(x[:, None] - y[None, :]) ** 2, epsilon=eps)
        solver = sinkhorn.Sinkhorn(threshold=threshold, max_iterations=most, lse_mode=lse)
        out = solver(linear_problem.LinearProblem(geom, a=a, b=b))
        T = out.apply(q, axis=1) / a
        return z @ T, (T, out.n_iters)

    def row(x, b, q, z):
        if not gradient:
            _, (T, iterations) = forward(x, b, q, z)
            return T, (), iterations
        (_, (T, iterations)), g = jax.value_and_grad(forward, (0, 1, 2), has_aux=True)(x, b, q, z)
        return T, g, iterations

    if how == "vmap":
        return jax.jit(jax.vmap(row))
    return jax.jit(lambda *v: jax.lax.map(lambda r: row(*r), v))


def ott_arguments(rows, dtype):
    return [jnp.asarray(np.stack([p[k] for p in rows]).astype(dtype)) for k in ("x", "b", "q", "zt")]


def pot(rows):
    """Solves rows by ot.sinkhorn to 1e-9, forward only: it has no gradients of a numpy problem."""
    import ot

    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p in rows:
            C = (p["x"][:, None] - p["y"][None, :]) ** 2
            P = ot.sinkhorn(p["a"], p["b"], C, p["eps"], stopThr=1e-9, numItermax=100000)
            out.append(P @ p["q"] / p["a"])
    return out


def nmf_start(shape):
    d, n, k = shape
    rng = np.random.default_rng(d)
    X = np.exp(rng.normal(size=(d, n)))
    scale = np.sqrt(X.mean() / k)
    return X, scale * (0.5 + rng.random((d, k))), scale * (0.5 + rng.random((k, n)))


def scikit(X, W, H, updates):
    from sklearn.decomposition import non_negative_factorization

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        non_negative_factorization(X, W=W.copy(), H=H.copy(), n_components=W.shape[1], init="custom", solver="mu",
                                   beta_loss="kullback-leibler", max_iter=updates, tol=0)


def numpy_updates(X, U, V, updates):
    U, V, R = U.copy(), V.copy(), np.empty_like(X)
    for _ in range(updates):
        np.matmul(U, V, out=R)
        np.divide(X, R, out=R)
        V *= (U.T @ R) / U.sum(0)[:, None]
        np.matmul(U, V, out=R)
        np.divide(X, R, out=R)
        U *= (R @ V.T) / V.sum(1)


def torch_updates(X, U, V, updates):
    import torch

    with torch.inference_mode():
        U, V, R = U.clone(), V.clone(), torch.empty_like(X)
        for _ in range(updates):
            torch.matmul(U, V, out=R)
            torch.div(X, R, out=R)
            V *= (U.T @ R) / U.sum(0)[:, None]
            torch.matmul(U, V, out=R)
            torch.div(X, R, out=R)
            U *= (R @ V.T) / V.sum(1)


class Program:
    """A Go benchmark. One run of a test binary is one measurement."""

    def __init__(self, group, name, binary, bench, benchtime, *flags):
        self.group, self.name = group, name
        self.benchtime = "20ms" if QUICK else benchtime
        pattern = "/".join("^%s$" % re.escape(p) for p in bench.split("/"))
        self.command = [str(here / ".work" / "bin" / binary), "-test.run=^$", "-test.bench=" + pattern, "-test.cpu=1", *flags]
        if binary.endswith(".wasm"):
            goroot = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
            self.command = ["node", "--stack-size=8192", goroot + "/lib/wasm/wasm_exec_node.js"] + self.command
        self.times, self.metrics = {}, {}

    def run(self, *more):
        cwd = here if "/calls." in " ".join(self.command) else root
        done = subprocess.run(self.command + ["-test.benchtime=" + self.benchtime, *more], capture_output=True, text=True, cwd=cwd)
        line = [l for l in done.stdout.splitlines() if l.startswith("Benchmark") and "ns/op" in l]
        if done.returncode or not line:
            raise RuntimeError(" ".join(self.command) + "\n" + done.stdout + done.stderr)
        words = line[0].split()[2:]
        return {unit: float(value) for value, unit in zip(words[::2], words[1::2])}

    def warm(self):
        pass

    def measure(self, turn):
        self.metrics[turn] = self.run()
        self.times[turn] = self.metrics[turn]["ns/op"] * 1e-9

    def metric(self, unit):
        return statistics.median(m[unit] for m in self.metrics.values())


def float32_child():
    """Answers requests on standard input. A request is a setting. The answer has the seconds
    of a row forward, the seconds with gradients or why there are none, and T of eight rows."""
    known = {}
    for line in sys.stdin:
        setting = tuple(json.loads(line))
        setting = (int(setting[0]), int(setting[1]), setting[2])
        rows = rows_of(setting)
        args = ott_arguments(rows, np.float32)
        answer = {}
        for name, gradient in (("forward", False), ("gradient", True)):
            try:
                if (setting, gradient) not in known:
                    f = ott_function(setting, np.float32, True, "map", 1e-3, 2000, gradient)
                    T, g, _ = jax.block_until_ready(f(*args))
                    if gradient and not all(bool(jnp.isfinite(v).all()) for v in g):
                        raise ArithmeticError("NaN")
                    known[setting, gradient] = f, T
                f, T = known[setting, gradient]
                start = time.perf_counter()
                jax.block_until_ready(f(*args))
                answer[name] = (time.perf_counter() - start) / len(rows)
                answer["T"] = np.asarray(T[:8], dtype=float).tolist()
            except Exception as e:
                answer[name], answer["why"] = None, type(e).__name__
        print(json.dumps(answer), flush=True)


class Float32:
    """ott-jax in float32, in a process of its own, because jax has one precision a process."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, "float32"] + (["quick"] if QUICK else []),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, setting):
        self.process.stdin.write(json.dumps(setting) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Narrow:
    def __init__(self, child, setting, name, key):
        self.child, self.setting, self.group, self.name, self.key = child, setting, label(setting), name, key
        self.times, self.answer = {}, None

    def warm(self):
        self.answer = self.child.ask(self.setting)

    def measure(self, turn):
        if self.answer[self.key] is not None:
            self.answer = self.child.ask(self.setting)
            if self.answer[self.key] is not None:
                self.times[turn] = self.answer[self.key]


# --- what is measured -----------------------------------------------------------


def contenders(file):
    out, notes = [], {}
    child = Float32()
    problems = {}
    for setting in SETTINGS:
        group = label(setting)
        rows = rows_of(setting)
        problems[group] = [{k: np.asarray(p[k]).tolist() for k in ("x", "b", "q", "zt", "eps")} for p in rows]
        some = rows[:8]
        # This is within 1e-12 of the solution in 160 digits on such rows: docs/measurements/peers.md.
        truth = compare.ours([dict(p, tolerance=1e-13) for p in some])
        want = [{"T": a["T"], "Tx": a["GradT"]["X"], "Tb": a["GradT"]["B"], "Tq": a["GradT"]["Q"]} for a in truth]

        def accuracy(T, g=None):
            got = []
            for i, p in enumerate(some):
                one = {"T": T[i]}
                if g:
                    one.update(Tx=g[0][i], Tb=g[1][i] - p["b"] @ g[1][i], Tq=g[2][i])
                got.append(one)
            text = "T %s" % compare.number(compare.worst(got, want, "T"))
            if g:
                text += ", gradients %s" % compare.number(np.max([compare.worst(got, want, k, True) for k in ("Tx", "Tb", "Tq")]))
            return text

        args = ott_arguments(rows, np.float64)
        for threshold, most in THRESHOLDS:
            for lse in (True, False):
                for how in ("vmap", "map"):
                    f = ott_function(setting, np.float64, lse, how, threshold, most)
                    name = "ott-jax %s, %s mode, %s" % ("1e-3" if threshold == 1e-3 else "1e-9", "log" if lse else "kernel",
                                                       "vmap" if how == "vmap" else "one by one")
                    T, g, iterations = (np.asarray(v) if not isinstance(v, tuple) else [np.asarray(w) for w in v] for v in f(*args))
                    notes[group, name] = "%s; %d to %d iterations" % (accuracy(T, g), iterations.min(), iterations.max())
                    out.append(Contender(group, name, lambda f=f, args=args: jax.block_until_ready(f(*args)), BATCH, warm=False))
        for key in ("forward", "gradient"):
            name = "ott-jax float32 1e-3, " + ("forward alone" if key == "forward" else "with gradients")
            c = Narrow(child, setting, name, key)
            c.warm()
            notes[group, name] = accuracy(np.array(c.answer["T"])) if c.answer[key] is not None else "raises " + c.answer["why"]
            out.append(c)
        few = rows[:4]
        notes[group, "POT 1e-9, forward alone"] = accuracy(np.array(pot(some)))
        out.append(Contender(group, "POT 1e-9, forward alone", lambda few=few: pot(few), len(few)))
        for build in BUILDS:
            out.append(Program(group, "cold " + build, "calls." + build, "BenchmarkCold/" + group, "200ms", "-rows=" + file))
        for build in BUILDS:
            out.append(Program(group, "warm " + build, "fits." + build, "BenchmarkWarmRow/" + group, "200ms"))
        cold = compare.ours(some)
        notes[group, "cold"] = accuracy(np.array([a["T"] for a in cold]), [np.array([a["GradT"][k] for a in cold]) for k in "XBQ"])
    pathlib.Path(file).write_text(json.dumps(problems))

    import torch
    import torchsort

    torch.set_num_threads(1)
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        values = torch.tensor(np.stack([p["x"] for p in rows_of(MAIN)]), dtype=dtype, requires_grad=True)
        z = torch.ones_like(values)

        def both(values=values, z=z):
            values.grad = None
            torchsort.soft_rank(values, regularization="l2", regularization_strength=0.1).backward(z)

        out.append(Contender(label(MAIN), "torchsort soft_rank %s" % name, both, BATCH))

    for shape in SHAPES + RANKS:
        # The time of an update grows about as d n (k + 8): k components and other work of a cell that takes as long as eight.
        d, n, k = shape
        updates = max(6, round(3.5e8 / (d * n * (k + 8))))
        benchtime = "%dx" % max(8, round(1e9 / (d * n * (k + 8))))
        size = "%dx%dx%d" % shape
        X, U, V = nmf_start(shape)
        Xt, Ut, Vt = np.ascontiguousarray(X.T), np.ascontiguousarray(U.T), np.ascontiguousarray(V.T)
        tensors = [torch.tensor(v) for v in (X, U, V)]
        group = "NMF " + size
        # With so many updates scikit-learn's checks and copies before the first are a negligible share.
        many = 4 * updates
        out.append(Contender(group, "scikit-learn", lambda X=X, U=U, V=V, u=many: scikit(X, U, V, u), many))
        out.append(Contender(group, "scikit-learn, samples in rows", lambda X=Xt, U=Vt, V=Ut, u=many: scikit(X, U, V, u), many))
        out.append(Contender(group, "NumPy", lambda X=X, U=U, V=V, u=updates: numpy_updates(X, U, V, u), updates))
        out.append(Contender(group, "torch float64", lambda t=tensors, u=updates: torch_updates(*t, u), updates))
        for build in BUILDS:
            out.append(Program(group, build, "fits." + build, "BenchmarkEpoch/NMF," + size, benchtime))
    for build in BUILDS:
        out.append(Program("QMF", build, "fits." + build, "BenchmarkEpoch/QMF,500x256x10,m=16", "20x"))
        out.append(Program("QMFQ", build, "fits." + build, "BenchmarkEpoch/QMFQ,160x80x8,m=8,100updates", "20x"))
        if toy_seconds():
            out.append(Program("loss", build, "calls." + build, "BenchmarkToLoss", "2x", "-toy=%s" % TOY))
    for bench, group, times in (("BenchmarkWarmRow/" + label(MAIN), "wasm row", "300ms"), ("BenchmarkEpoch/NMF,500x256x10", "wasm NMF", "100x")):
        for name, binary in (("native", "fits.purego"), ("wasm", "fits.wasm")):
            out.append(Program(group, name, binary, bench, times))
    if "avx512f" in flags():
        out.append(Program("fused", "fused", "calls.native", "BenchmarkFused", "500x"))
    return out, notes


def toy_seconds():
    """Returns the authors' seconds an epoch, None where no folder is given."""
    return TOY and json.loads((TOY / "official.json").read_text())["seconds per epoch, one core"]


def flags():
    try:
        return re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1).split()
    except (OSError, AttributeError):
        return []


# --- the page -------------------------------------------------------------------


def main():
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured(*contenders(os.path.join(folder, "rows.json")))
        measured.go()
        import page

        if QUICK:
            print(page.text(measured))
        else:
            (root / "docs" / "measurements" / "speed.md").write_text(page.text(measured))
            page.plot(measured, root / "docs" / "measurements" / "speed.png")


class Measured:
    def __init__(self, all, notes):
        self.all, self.notes = all, notes
        self.by = {(c.group, c.name): c for c in all}

    def go(self):
        for c in self.all:
            c.warm()
        print("all are warm", file=sys.stderr, flush=True)
        for turn in range(ROUNDS):
            start = time.perf_counter()
            for c in self.all:
                c.measure(turn)
            print("round %d of %d: %.0f s" % (turn + 1, ROUNDS, time.perf_counter() - start), file=sys.stderr, flush=True)

    def has(self, group, name):
        return (group, name) in self.by and bool(self.by[group, name].times)

    def median(self, group, name):
        return statistics.median(self.by[group, name].times.values())

    def metric(self, group, name, unit):
        return self.by[group, name].metric(unit)

    def ratio(self, group, peer, ours, other=None):
        """Returns the median over rounds of the peer's time divided by ours."""
        p, o = self.by[group, peer].times, self.by[other or group, ours].times
        return statistics.median(p[t] / o[t] for t in p if t in o)

    def fastest(self, group, begins, ends=""):
        """Returns the name of the fastest contender whose name begins and ends with these strings."""
        return min((c.name for c in self.all if c.group == group and c.name.startswith(begins) and c.name.endswith(ends) and c.times), key=lambda n: self.median(group, n))


if __name__ == "__main__":
    float32_child() if "float32" in sys.argv else main()
