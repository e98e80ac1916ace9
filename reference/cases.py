"""Reference values of the operators and their derivatives, in 160-digit arithmetic.

Writes testdata/cases.json.gz, which cases_test.go reads. The definitions are
taken from the paper and evaluated as they stand, with no regard to cost: plain
costs, no centring, no structure of the grid. Nothing here is shared with the
Go code.

The problem of one row, x~ = squash(x):

    P = argmin <P,C> - eps H(P),  P 1 = a, P^T 1 = b,  C_ij = (x~_i - y_j)^2
    M = diag(1/a) P = row softmax of (g_j - C_ij)/eps
    T = M q,   R = n M cumsum(b)  or  n M (cumsum(b) - b/2) + 1/2,
    S_j = sum_i a_i M_ij x_i / b_j

Gradients are those of <z, output>, by the implicit function theorem, and every
one is compared with central differences before it is written.

A case holds

    x a b y q eps   the arguments; a, b null stand for uniform weights, others are brought to sum 1 in 160 digits
    squash          logistic: x~ = 1/(1 + exp(-z pi/sqrt 3)), z = (x-mean)/deviation, that of the population;
                    unit: 1/(1 + exp(-z)); arctan: atan z; none
    midpoint        R is n M (cumsum(b) - b/2) + 1/2
    iterations      T and R are those of the row-exact plan after so many, S of the same plan divided by its own
                    column sums, marginal its column error; no derivatives. 0: converged
    T R S F G       values and potentials, sum_j b_j G_j = 0; F of a sample without weight lacks eps log a
    zT vjpT ...     a cotangent and the gradient; in a and b on the simplex, sum_i a_i A_i = sum_j b_j B_j = 0; in x
                    through the squash; in y and b with q fixed; where all x are equal x~ counts as constant
    dir jvp         a direction in all arguments at once and the derivative of T along it
    coupling        the least share of a level that two neighbouring levels exchange; below 1e-12 a double does not
                    hold the potential between them, and F, G and the gradients in a and b are left out

r is an excerpt of results of preprocessCore and base R, for the limit eps = 0; its source says which.
"""

import gzip
import json
import pathlib
import random
import sys

import mpmath
from mpmath import mp, mpf

DIGITS = 160  # of the solution; eps and offsets cost some
ROUGH = 60  # of the way there
STEP = mpf("1e-36")  # of central differences, relative to an argument's scale
AGREE = mpf("1e-25")  # between gradient and differences, relative
DETERMINED = 1e-12  # coupling of two neighbouring levels below which a double cannot hold their potential


# --- the problem ---------------------------------------------------------------


def curve(kind, z):
    """Returns what is made of a z-score, and the derivative."""
    if kind == "arctan":
        return mpmath.atan(z), 1 / (1 + z * z)
    slope = mp.pi / mpmath.sqrt(3) if kind == "logistic" else mpf(1)  # else "unit"
    s = 1 / (1 + mpmath.exp(-slope * z))
    return s, s * (1 - s) * slope


def squash(kind, x):
    """Returns x~ and what the way back needs."""
    if kind == "none":
        return list(x), None
    n = len(x)
    mean = mpmath.fsum(x) / n
    std = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in x) / n)
    if std == 0:
        return [curve(kind, mpf(0))[0]] * n, (mean, std)
    return [curve(kind, (v - mean) / std)[0] for v in x], (mean, std)


def squash_back(kind, grad, x, kept):
    """Turns a gradient at x~ into one at x: both mean and deviation move with x."""
    if kind == "none":
        return list(grad)
    mean, std = kept
    n = len(x)
    if std == 0:
        return [mpf(0)] * n
    z = [(v - mean) / std for v in x]
    w = [g * curve(kind, v)[1] for g, v in zip(grad, z)]
    mw = mpmath.fsum(w) / n
    mwz = mpmath.fsum(p * q for p, q in zip(w, z)) / n
    return [(p - mw - q * mwz) / std for p, q in zip(w, z)]


def plan(xs, y, g, eps):
    """Row softmax of (g_j - (x~_i-y_j)^2)/eps."""
    rows = []
    for v in xs:
        e = [mpmath.exp((gj - (v - t) ** 2) / eps) for gj, t in zip(g, y)]
        s = mpmath.fsum(e)
        rows.append([p / s for p in e])
    return rows


def laplacian(M, a):
    """Off-diagonal couplings sum_i a_i M_ij M_ik."""
    m = len(M[0])
    G = [[mpf(0)] * m for _ in range(m)]
    for w, row in zip(a, M):
        for j in range(m):
            t = w * row[j]
            for k in range(j):
                G[j][k] += t * row[k]
    for j in range(m):
        for k in range(j):
            G[k][j] = G[j][k]
    return G


def eliminate(G, r, c):
    """Solves L z = r, L the graph Laplacian of the couplings G; r sums to 0."""
    m = len(r)
    W = [row[:] for row in G]
    z = list(r)
    floor = mpf(10) ** (20 - mp.dps)
    pivot = [None] * m
    for k in range(m - 1, 0, -1):
        d = max(mpmath.fsum(W[k][:k]), floor * c[k])
        pivot[k] = d
        for i in range(k):
            for j in range(i):
                W[i][j] += W[k][i] * W[k][j] / d
                W[j][i] = W[i][j]
            z[i] += W[k][i] / d * z[k]
    z[0] = mpf(0)
    for k in range(1, m):
        z[k] = z[k] / pivot[k] + mpmath.fsum(W[k][j] * z[j] for j in range(k)) / pivot[k]
    return z


def columns(M, a):
    return [mpmath.fsum(w * row[j] for w, row in zip(a, M)) for j in range(len(M[0]))]


def ascend(xs, a, y, b, g, eps, tol, most):
    """Damped Newton on the concave semi-dual, a Sinkhorn step where far off."""
    for count in range(most):
        M = plan(xs, y, g, eps)
        c = columns(M, a)
        rel = max(abs(p - q) / q for p, q in zip(c, b))
        if rel < tol:
            return g, M, c
        if rel > 0.5:
            g = [v + eps * mpmath.log(q / p) for v, p, q in zip(g, c, b)]
            M = plan(xs, y, g, eps)
            c = columns(M, a)
        d = eliminate(laplacian(M, a), [q - p for p, q in zip(c, b)], c)
        reach = max(d) - min(d)
        t = mpmath.log1p(reach) / reach if reach > 1 else mpf(1)
        g = [v + eps * t * s for v, s in zip(g, d)]
    raise ArithmeticError("no convergence: %s" % mpmath.nstr(rel, 5))


def solve(xs, a, y, b, eps, g=None):
    """Returns the converged g, M and column sums. Without a start, eps falls from the square of the spread."""
    last = mpf(10) ** (35 - DIGITS)
    if g is None:
        with mp.workdps(ROUGH + 40):
            # The part of g that a distance between x and y makes is known.
            shift = (max(xs) + min(xs)) / 2 - (max(y) + min(y)) / 2
            mid = (max(y) + min(y)) / 2
            g = [-2 * shift * (t - mid) + (t - mid) ** 2 for t in y]
            e = max((max(xs) - min(xs)) ** 2, (max(y) - min(y)) ** 2)
            while e > eps:
                g, _, _ = ascend(xs, a, y, b, g, e, mpf("1e-3"), 4000)
                e /= 3
            g, _, _ = ascend(xs, a, y, b, g, eps, mpf("1e-20"), 4000)
    return ascend(xs, a, y, b, g, eps, last, 60)


def sinkhorn(xs, a, y, b, eps, count):
    """Algorithm 1 of the paper, scalings as they stand: v = b/K^T u, u = a/K v, from u = 1."""
    K = [[mpmath.exp(-((v - t) ** 2) / eps) for t in y] for v in xs]
    u = [mpf(1)] * len(xs)
    for _ in range(count):
        v = [bj / mpmath.fsum(ui * row[j] for ui, row in zip(u, K)) for j, bj in enumerate(b)]
        u = [ai / mpmath.fsum(vj * k for vj, k in zip(v, row)) for ai, row in zip(a, K)]
    return [[ui * k * vj / ai for k, vj in zip(row, v)] for ui, row, ai in zip(u, K, a)]


def levels(b, n, midpoint):
    """What the rank averages over the targets."""
    out, sum_ = [], mpf(0)
    for v in b:
        sum_ += v
        out.append(n * (sum_ - v / 2) + mpf(1) / 2 if midpoint else n * sum_)
    return out


def normalise(w):
    s = mpmath.fsum(w)
    return [v / s for v in w]


def tangent(grad, w):
    s = mpmath.fsum(g * v for g, v in zip(grad, w))
    return [g - s for g in grad]


def dot(p, q):
    return mpmath.fsum(s * t for s, t in zip(p, q))


class Problem:
    """Arguments with a and b of sum 1, and the solution."""

    def __init__(self, case, arg, start=None):
        self.squash, self.midpoint, self.arg = case["squash"], case["midpoint"], arg
        self.x, self.a, self.b, self.y, self.q, self.eps = (arg[k] for k in ("x", "a", "b", "y", "q", "eps"))
        self.xs, self.kept = squash(self.squash, self.x)
        if case["iterations"]:
            self.M = sinkhorn(self.xs, self.a, self.y, self.b, self.eps, case["iterations"])
            self.c = columns(self.M, self.a)
        else:
            self.g, self.M, self.c = solve(self.xs, self.a, self.y, self.b, self.eps, start)

    def T(self):
        return [dot(row, self.q) for row in self.M]

    def R(self):
        q = levels(self.b, len(self.x), self.midpoint)
        return [dot(row, q) for row in self.M]

    def S(self, by=None):
        by = self.b if by is None else by
        return [mpmath.fsum(a * row[j] * v for a, row, v in zip(self.a, self.M, self.x)) / by[j] for j in range(len(self.y))]

    def potentials(self):
        mean = dot(self.b, self.g)
        g = [v - mean for v in self.g]
        f = []
        for v, a in zip(self.xs, self.a):
            s = mpmath.fsum(mpmath.exp((gj - (v - t) ** 2) / self.eps) for gj, t in zip(g, self.y))
            f.append(-self.eps * mpmath.log(s) + (self.eps * mpmath.log(a) if a > 0 else 0))
        return f, g

    def coupling(self):
        """The least share of a level that neighbours exchange across a boundary."""
        G = laplacian(self.M, self.a)
        m = len(self.y)
        return min([mpf(1)] + [mpmath.fsum(G[j][k] for j in range(J + 1) for k in range(J + 1, m)) / min(self.b[J], self.b[J + 1])
                               for J in range(m - 1)])

    def back(self, U):
        """Gradient of a function whose derivative at logit ij, h = g/eps fixed, is U_ij."""
        n, m, eps = len(self.x), len(self.y), self.eps
        lam = eliminate(laplacian(self.M, self.a), [mpmath.fsum(U[i][j] for i in range(n)) for j in range(m)], self.c)
        mean = dot(self.b, lam)
        lam = [v - mean for v in lam]
        bar = [dot(row, lam) for row in self.M]
        xs, y, de = [mpf(0)] * n, [mpf(0)] * m, mpf(0)
        for i in range(n):
            for j in range(m):
                w = U[i][j] - self.a[i] * self.M[i][j] * (lam[j] - bar[i])
                d = self.xs[i] - self.y[j]
                xs[i] -= w * 2 * d / eps
                y[j] += w * 2 * d / eps
                de += w * d * d / eps**2
        x = squash_back(self.squash, xs, self.x, self.kept)
        return {"x": x, "a": [-v for v in bar], "b": lam, "y": y, "eps": de}

    def vjp_T(self, z, q=None):
        q = self.q if q is None else q
        t = [dot(row, q) for row in self.M]
        out = self.back([[zi * p * (qj - ti) for p, qj in zip(row, q)] for zi, row, ti in zip(z, self.M, t)])
        out["q"] = [mpmath.fsum(zi * row[j] for zi, row in zip(z, self.M)) for j in range(len(q))]
        return self.project(out)

    def vjp_R(self, z):
        n = len(self.x)
        out = self.vjp_T(z, levels(self.b, n, self.midpoint))
        per = [n * v for v in out.pop("q")]
        for j in range(len(per)):
            out["b"][j] += mpmath.fsum(per[j:]) - (per[j] / 2 if self.midpoint else 0)
        return self.project(out)

    def vjp_S(self, z):
        v = [p / q for p, q in zip(z, self.b)]
        mean = [dot(row, v) for row in self.M]
        U = [[a * p * (vj - mi) * x for p, vj in zip(row, v)] for a, x, mi, row in zip(self.a, self.x, mean, self.M)]
        out = self.back(U)
        s = self.S()
        out["x"] = [g + a * mi for g, a, mi in zip(out["x"], self.a, mean)]
        out["a"] = [g + x * mi for g, x, mi in zip(out["a"], self.x, mean)]
        out["b"] = [g - vj * sj for g, vj, sj in zip(out["b"], v, s)]
        return self.project(out)

    def project(self, out):
        out["a"], out["b"] = tangent(out["a"], self.a), tangent(out["b"], self.b)
        return out


# --- the check -----------------------------------------------------------------


def moved(arg, dir_, t):
    """Arguments moved by t times a direction; weights are kept at sum 1."""
    out = dict(arg)
    for k, d in dir_.items():
        out[k] = arg[k] + t * d if k == "eps" else [v + t * w for v, w in zip(arg[k], d)]
    for k in "ab":
        if k in dir_:
            out[k] = normalise(out[k])
    return out


def check(case, p, z, grads, scale, dice, coupling):
    """Compares every gradient with central differences, argument by argument, along two random directions."""
    constant = case["squash"] != "none" and p.kept[1] == 0
    worst = mpf(0)
    for name in ("x", "a", "b", "y", "q", "eps"):
        if name == "x" and constant:
            continue  # x~ has no derivative there: 0 is a convention
        if name in "ab" and coupling < mpf(10) ** (40 - DIGITS):
            continue  # these digits do not hold the potential either; neither is written
        for _ in range(1 if len(p.x) > 40 else 2):
            if name == "eps":
                d = p.eps
            else:
                d = [mpf(dice.uniform(-1, 1)) * scale[name] for _ in p.arg[name]]
            ends = [Problem(case, moved(p.arg, {name: d}, s * STEP), p.g) for s in (1, -1)]
            for op, want in grads.items():
                if name not in want:
                    continue
                lo, hi = (getattr(e, op)() for e in ends[::-1])
                diff = dot(z[op], [(s - t) / (2 * STEP) for s, t in zip(hi, lo)])
                # Along the simplex only: a direction of another sum is normalised away.
                g = want[name]
                got = g * d if name == "eps" else dot(g, d)
                size = abs(g * d) if name == "eps" else mpmath.fsum(abs(s * t) for s, t in zip(g, d))
                floor = mpf("1e-30") * max(abs(v) for v in z[op]) * (max(hi) - min(hi) + abs(hi[0]))
                err = abs(got - diff) / max(size, floor)
                worst = max(worst, err)
                if err > AGREE:
                    raise ArithmeticError("%s: d%s/d%s is %s, differences give %s" % (
                        case["name"], op, name, mpmath.nstr(got, 20), mpmath.nstr(diff, 20)))
    return worst


# --- the cases -----------------------------------------------------------------


def short(v):
    """A decimal of few digits, as a double: inputs compress well and read well."""
    return float("%.4g" % v)


def cases():
    """Yields the inputs. Every number is a double; nil weights stand for uniform ones."""
    dice = random.Random(20200713)

    def gauss():
        return dice.gauss(0, 1)

    def row(n, kind="normal"):
        return [short({"normal": gauss, "uniform": dice.random, "heavy": lambda: mpmath.exp(2 * gauss())}[kind]()) for _ in range(n)]

    def weights(n):
        return [short(0.2 + dice.random()) for _ in range(n)]

    def grid(m, lo=0.0, hi=1.0):
        return [lo + (hi - lo) * j / (m - 1) for j in range(m)]

    def uneven(m, lo=0.0, hi=1.0):
        y = sorted(short(lo + (hi - lo) * (j + 0.6 * dice.random()) / (m - 0.4)) for j in range(m))
        assert all(s < t for s, t in zip(y, y[1:]))
        return y

    def rising(m):
        q, v = [], short(gauss())
        for _ in range(m):
            q.append(short(v))
            v += 0.1 + dice.random()
        return q

    count = 0

    def case(name, x, y, eps, a=None, b=None, squash="logistic", midpoint=None, iterations=0):
        nonlocal count
        count += 1
        return {"name": name, "n": len(x), "m": len(y), "eps": eps, "squash": squash, "iterations": iterations,
                "midpoint": count % 3 == 0 if midpoint is None else midpoint,
                "x": x, "a": a, "b": b, "y": y, "q": rising(len(y))}

    for eps in (100.0, 1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-6):
        yield case("squashed, regular, eps %g" % eps, row(11), grid(5), eps, weights(11), weights(5))
        yield case("squashed, irregular, eps %g" % eps, row(9, "heavy"), uneven(4), eps, weights(9), weights(4))
    for eps in (100.0, 1.0, 0.01, 1e-4, 1e-6):
        yield case("as is, irregular, eps %g" % eps, row(10, "uniform"), uneven(6), eps, weights(10), weights(6), "none")
    for eps in (0.1, 1e-3):
        yield case("as is, regular, eps %g" % eps, row(13, "uniform"), grid(6), eps, None, weights(6), "none")
    yield case("wide targets", row(9), grid(5, -5.0, 10.0), 0.5, None, None, "none")
    yield case("wide irregular targets", row(9), uneven(5, -5.0, 10.0), 0.3, weights(9), weights(5), "none")

    a = weights(12)
    a[0] = a[5] = a[11] = 0.0
    yield case("zero weights, squashed", row(12), grid(6), 0.01, a, weights(6))
    x = row(12, "uniform")
    x[0], x[5] = 1.5, -0.5  # the extremes weigh nothing
    yield case("zero weights at the extremes", x, uneven(5), 1e-3, a, weights(5), "none")
    yield case("zero weights, coarse", row(12), grid(4), 1.0, a, None)

    yield case("more levels than samples", row(4), grid(9), 0.01, weights(4), weights(9))
    yield case("more levels than samples, irregular", row(3), uneven(14), 0.1, None, weights(14))
    yield case("more levels than samples, as is", row(5, "uniform"), grid(12), 1e-3, weights(5), weights(12), "none")
    yield case("one sample", [3.25], grid(4), 0.01, None, weights(4))
    yield case("one sample, as is", [0.3], grid(5), 0.1, None, weights(5), "none")
    yield case("two levels", row(7), grid(2), 0.01, None, weights(2))
    yield case("two levels, as is", row(8), [-1.0, 3.0], 0.1, weights(8), weights(2), "none")
    yield case("one level", row(5), [0.5], 0.01, weights(5), None)

    ties = [0.25, 0.5, 0.25, 0.75, 0.5, 0.5, 0.0, 0.0, 0.75, 0.25]
    yield case("ties", ties, grid(5), 0.01, None, weights(5))
    yield case("ties, as is", ties, uneven(4), 1e-4, weights(10), weights(4), "none")
    yield case("constant row", [3.7] * 6, grid(4), 0.01, weights(6), weights(4))
    yield case("constant row, irregular", [-2.0] * 5, uneven(6), 1e-3, None, weights(6))
    yield case("constant row, as is", [0.4] * 6, grid(4), 0.01, weights(6), weights(4), "none")

    far = [1e9 + round(4 * dice.random(), 3) for _ in range(10)]
    yield case("offset 1e9", far, grid(5), 0.01, weights(10), weights(5))
    yield case("offset 1e9, irregular", far, uneven(4), 1e-3, None, weights(4))
    yield case("offset 1e9, as is", far, [1e9 + v for v in grid(5)], 0.1, weights(10), weights(5), "none")
    yield case("offset -1e9, targets elsewhere", [-v for v in far], grid(4), 1.0, None, weights(4), "none")
    yield case("tiny numbers", [v * 1e-150 for v in row(9)], grid(5), 0.01, None, weights(5))
    yield case("huge numbers", [v * 1e150 for v in row(9)], grid(5), 0.01, weights(9), None)

    tiny = [1.0, 1e-6, 0.5, 1e-6, 1.0, 0.3]
    yield case("tiny target weights", row(14), grid(6), 0.01, None, tiny)
    yield case("tiny target weights, irregular", row(14), uneven(6), 1e-3, weights(14), tiny)
    yield case("tiny target weights, sharp", row(14), grid(6), 1e-4, None, tiny)
    yield case("tiny outer target weights", row(9), grid(4), 0.1, weights(9), [1e-6, 1.0, 1.0, 1e-6])

    def clusters(n, low):
        return [float("%.6f" % ((0 if i < low else 1) + 1e-3 * gauss())) for i in range(n)]

    for eps in (1e-3, 1e-4):
        yield case("two clusters, even, eps %g" % eps, clusters(20, 10), grid(8), eps, None, None, "none")
        yield case("two clusters, uneven, eps %g" % eps, clusters(20, 7), grid(8), eps, None, None, "none")
        yield case("two clusters, irregular, eps %g" % eps, clusters(17, 9), uneven(7), eps, None, weights(7), "none")
    for eps in (0.02, 0.01, 0.006):  # one boundary that is coupled, and ever less
        yield case("two clusters, even, eps %g" % eps, clusters(16, 8), grid(6), eps, None, None, "none")
    yield case("two clusters, even, irregular, eps 0.01", clusters(16, 8), uneven(6), 0.01, weights(16), None, "none")
    yield case("two clusters, 16 levels", clusters(30, 15), grid(16), 1e-3, None, None, "none")

    for kind in ("unit", "arctan"):
        for eps in (0.1, 1e-3):
            yield case("%s, eps %g" % (kind, eps), row(10), grid(5), eps, weights(10), weights(5), kind)
        yield case("%s, irregular" % kind, row(9, "heavy"), uneven(6, -1.5, 1.5), 0.01, None, weights(6), kind)
        yield case("%s, constant row" % kind, [0.7] * 5, grid(3), 0.01, None, weights(3), kind)

    yield case("heavy tails", [short(mpmath.exp(3 * gauss())) for _ in range(25)], grid(8), 0.01, None, weights(8))
    yield case("counts", [float(int(mpmath.exp(1.5 * gauss()))) for _ in range(30)], grid(8), 0.01)
    for eps in (0.1, 0.01, 1e-3):
        yield case("60 by 16, eps %g" % eps, row(60), grid(16), eps, None, weights(16))
    yield case("60 by 16, irregular", row(60), uneven(16), 0.01, weights(60), weights(16))

    for count_ in (1, 2, 5, 20):
        yield case("%d iterations" % count_, row(12), grid(5), 0.01, weights(12), weights(5), iterations=count_)
        yield case("%d iterations, as is" % count_, row(8, "uniform"), uneven(6), 0.1, weights(8), weights(6), "none", iterations=count_)
    yield case("1 iteration, sharp", row(9, "uniform"), grid(5), 1e-3, weights(9), weights(5), "none", iterations=1)
    yield case("5 iterations, sharp", row(9), uneven(5), 1e-4, weights(9), weights(5), iterations=5)


def numbers(v, scale=mpf(0)):
    """Doubles nearest to v; what is less than 1e-60 of the scale is 0."""
    if not isinstance(v, list):
        return 0.0 if abs(v) < mpf("1e-60") * scale else float(v)
    return [numbers(t, scale) for t in v]


def finish(case, dice):
    """Adds the outputs to a case."""
    n, m = case["n"], case["m"]
    exact = lambda v: [mpf(t) for t in v]
    arg = {"x": exact(case["x"]), "y": exact(case["y"]), "q": exact(case["q"]), "eps": mpf(case["eps"]),
           "a": normalise(exact(case["a"] or [1] * n)), "b": normalise(exact(case["b"] or [1] * m))}
    p = Problem(case, arg)
    case["T"], case["R"] = numbers(p.T()), numbers(p.R())
    if case["iterations"]:
        case["S"] = numbers(p.S(p.c))
        case["marginal"] = float(max(abs(c - b) / b for c, b in zip(p.c, p.b)))
        return "iterated"
    case["S"] = numbers(p.S())
    coupling = p.coupling()
    case["coupling"] = float(coupling)
    z = {"T": [short(dice.gauss(0, 1)) for _ in range(n)], "R": [short(dice.gauss(0, 1)) for _ in range(n)],
         "S": [short(dice.gauss(0, 1)) for _ in range(m)]}
    grads = {op: getattr(p, "vjp_" + op)(exact(z[op])) for op in "TRS"}
    span = max(p.x) - min(p.x)
    wide = lambda v: max(v) - min(v)
    scale = {"x": span or mpf(1), "y": wide(p.y) or mpf(1), "q": mpf(1), "a": 1 / mpf(n), "b": 1 / mpf(m)}
    worst = check(case, p, z, grads, scale, dice, coupling)
    if coupling >= DETERMINED:
        f, g = p.potentials()
        case["F"], case["G"] = numbers(f), numbers(g)
    constant = case["squash"] != "none" and p.kept[1] == 0
    for op in "TRS":
        case["z" + op] = z[op]
        out = {}
        for name, v in grads[op].items():
            if name in "ab" and coupling < DETERMINED:
                continue
            averaged = {"T": wide(p.q), "R": mpf(n), "S": span or abs(p.x[0])}[op]
            unit = max(abs(mpf(t)) for t in z[op]) * averaged
            if name == "x":
                unit /= scale["x"]
            out[name] = numbers(v, unit)
        case["vjp" + op] = out
    if n <= 20:
        # One direction in every argument at once; a constant row has none in x.
        d = {"x": [short(dice.gauss(0, 1) * float(scale["x"])) for _ in range(n)], "a": [short(dice.gauss(0, 1) / n) for _ in range(n)],
             "b": [short(dice.gauss(0, 1) / m) for _ in range(m)], "y": [short(dice.gauss(0, 1) * float(scale["y"]) / m) for _ in range(m)],
             "q": [short(dice.gauss(0, 1)) for _ in range(m)], "eps": short(dice.gauss(0, 1) * case["eps"])}
        if coupling < DETERMINED:
            d["a"], d["b"] = [0.0] * n, [0.0] * m
        real = {k: mpf(v) if k == "eps" else exact(v) for k, v in d.items()}
        move = {k: v for k, v in real.items() if not (k == "x" and constant)}
        lo, hi = (Problem(case, moved(arg, move, s * STEP), p.g).T() for s in (-1, 1))
        out = [(s - t) / (2 * STEP) for s, t in zip(hi, lo)]
        # The same, from the other side.
        sumA, sumB = mpmath.fsum(real["a"]), mpmath.fsum(real["b"])
        real["a"] = [v - w * sumA for v, w in zip(real["a"], p.a)]
        real["b"] = [v - w * sumB for v, w in zip(real["b"], p.b)]
        terms = [grads["T"]["eps"] * real["eps"]] + [dot(grads["T"][k], real[k]) for k in ("x", "a", "b", "y", "q")]
        left, right = dot(exact(z["T"]), out), mpmath.fsum(terms)
        if abs(left - right) > AGREE * max(abs(t) for t in terms + [left]):
            raise ArithmeticError("%s: forward %s, transposed %s" % (case["name"], mpmath.nstr(left, 20), mpmath.nstr(right, 20)))
        case["dir"], case["jvp"] = d, numbers(out, wide(p.q) or mpf(1))
    return "coupling %s, differences agree to %s" % (mpmath.nstr(coupling, 3), mpmath.nstr(worst, 3))


# --- what R gives --------------------------------------------------------------


def from_r(path):
    """The excerpt of preprocessCore's and base R's results that the limit eps -> 0 is compared with."""
    data = json.loads(pathlib.Path(path).read_text())
    column = lambda rows, j: [row[j] for row in rows]
    out = []
    use = data["use_target"]
    for j in range(len(use["x"][0])):
        out.append({"name": "use.target, column %d" % (j + 1), "x": column(use["x"], j),
                    "q": use["same_length"]["target"], "want": column(use["same_length"]["result"], j)})
    use = data["use_target_ties"]
    for j in range(len(use["x"][0])):
        out.append({"name": "use.target with ties, column %d" % (j + 1), "x": column(use["x"], j),
                    "q": use["m8"]["target"], "want": column(use["m8"]["result"], j)})
    for name in ("wikipedia_4x3", "continuous_12x4", "many_zeros_10x3", "constant_column_6x3"):
        # Columns without missing values; the target is the mean of the sorted columns.
        c = data["cases"][name]
        n, d = len(c["x"]), len(c["x"][0])
        sorted_ = [sorted(column(c["x"], j)) for j in range(d)]
        target = [sum(s[i] for s in sorted_) / d for i in range(n)]
        for j in range(d):
            out.append({"name": "normalize.quantiles, %s, column %d" % (name, j + 1), "x": column(c["x"], j),
                        "q": target, "want": column(c["preprocessCore_normalize_quantiles"], j)})
    versions = data["versions"]
    rank = data["rank_average"]
    return {"source": "preprocessCore %s and base %s" % (versions["preprocessCore"], versions["R"]),
            "maps": out, "ranks": [{"name": "rank, ties averaged", "x": rank["x"], "want": rank["rank"]}]}


def main():
    here = pathlib.Path(__file__).resolve().parent
    to = here.parent / "testdata" / "cases.json.gz"
    only = None
    r = None
    args = sys.argv[1:]
    while args:
        flag = args.pop(0)
        if flag == "-r":
            r = from_r(args.pop(0))
        elif flag == "-o":
            to = pathlib.Path(args.pop(0))
        elif flag == "-only":
            only = args.pop(0)
        else:
            sys.exit("usage: cases.py [-r qn.json] [-o FILE] [-only PART OF A NAME]")
    if r is None and to.exists():  # keep the excerpt that is there
        r = json.loads(gzip.decompress(to.read_bytes())).get("r")
    mp.dps = DIGITS
    done = []
    for k, case in enumerate(cases()):
        if only and only not in case["name"]:
            continue
        said = finish(case, random.Random(k))
        print("%-40s %s" % (case["name"], said), flush=True)
        done.append(case)
    out = {"format": "quantmf-cases-1", "digits": DIGITS, "cases": done, "r": r}
    text = json.dumps(out, separators=(",", ":"))
    to.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print("%d cases, %d bytes in %s" % (len(done), to.stat().st_size, to.name))


if __name__ == "__main__":
    main()
