"""Measures the time and memory of fits of many sizes, and writes docs/measurements/scale.tsv, its plot, and the
tables of docs/scale.md.

    bench/run scale            measures all sizes, which takes a quarter of an hour, and fills the page
    bench/run scale page       fills the page from earlier measurements

Each fit runs in a process of its own on one thread. Times are seconds of the processor. Memory is the most that was
resident during the fit less what was before it; the collector runs whenever the heap has grown by a tenth.
"""

import itertools
import math
import os
import sys

from harness import QUICK, arguments, ask, build, digits, fill, fit, pages, plot, root, table

import numpy as np
import scipy.optimize

NAMES = {"nmf": "NMF, Newton's method", "nmf-updates": "NMF, multiplicative updates",
         "nmf-sparse": "NMF over sparse rows, Newton's method",
         "nmf-sparse-updates": "NMF over sparse rows, multiplicative updates", "qmf": "QMF, 8 levels"}
FIELDS = ("kind", "d", "n", "density", "k", "m", "shards", "nonzero", "start", "epoch", "fit", "told", "reduce", "step",
          "moved")
MIDDLE = {"d": 2000, "n": 4000, "density": 0.05, "k": 10, "m": 0, "shards": 0}


def grid():
    """Returns the fits: for each kind a middle size, and sizes that differ from it in one or two numbers."""
    for kind in NAMES:
        middle = dict(MIDDLE, kind=kind, **({"d": 1000, "m": 8} if kind == "qmf" else {}))
        ds, ns = [500, 8000, 20000], [1000, 16000, 64000]
        if kind == "qmf":  # the largest sizes would take too long
            ds, ns = ds[:2], ns[:2]
        changes = [{}] + [{"d": d, "n": 2000} for d in ds] + [{"d": 1000, "n": n} for n in ns]
        changes += [{"k": k} for k in (5, 20, 40)]
        changes += [{"density": v} for v in (0.01, 0.1)] if "sparse" in kind else []
        changes += [{"m": m} for m in (4, 16)] if kind == "qmf" else []
        changes += [{"d": 2000, "shards": s} for s in (1, 2, 4, 8)]
        changes += [{"d": 2000, "n": n, "shards": 8} for n in (1000, 16000)]
        yield from (dict(middle, **c) for c in changes)


def measure(binary, w):
    """Returns a line of the results."""
    newton, sharded = w["kind"] in ("nmf", "nmf-sparse"), w["shards"] > 0
    epochs = (9 if newton else 3) if sharded else 4 if w["kind"] == "qmf" else 12
    os.environ["GOGC"] = "10"
    got = fit(binary, D=w["d"], N=w["n"], K=w["k"], Density=w["density"], Levels=w["m"], Epochs=epochs,
              Shards=w["shards"], Method="QMF" if w["kind"] == "qmf" else "NMF",
              Updates="newton" if newton else "multiplicative",
              Holder="positive" if w["kind"] in ("nmf", "nmf-updates") else "")
    line = dict(w, nonzero=got["Nonzero"], fit=got["Memory"], told=got["MemoryOf"], start=0, epoch=0, reduce=0, step=0,
                moved=0)
    if sharded:
        s = got["Shards"]
        return dict(line, step=s["Longest"], reduce=s["Reduce"], moved=s["Moved"])
    # Newton's method begins with multiplicative updates, so the latter half of its epochs counts
    each = np.diff(got["Seconds"])
    epoch = each[epochs // 2 - 1:].mean() if newton else each.min()
    return dict(line, epoch=epoch, start=max(got["Seconds"][0] - epoch, 0))


# --- formulas: sums of terms in d, n, k, m and the number z of nonzero cells -----------


def wide(w):
    """All rows read the same n numbers of a component: the larger n, the fewer stay in the caches."""
    return math.log2(1 + w["n"] / 8000)


def tried(w):
    """Cells of the short fits by which a QMF chooses its start."""
    return min(min(w["d"], 512) * w["n"], 1 << 19)


DN = ("dn", lambda w: w["d"] * w["n"])
DNK = ("dnk", lambda w: w["d"] * w["n"] * w["k"])
DNW = ("dn·log₂(1+n/8000)", lambda w: w["d"] * w["n"] * wide(w))
DENSE = [DN, DNK, DNW]
SPARSE = [("z", lambda w: w["nonzero"]), ("zk", lambda w: w["nonzero"] * w["k"]),
          ("zk·log₂(1+n/8000)", lambda w: w["nonzero"] * w["k"] * wide(w)), ("n(k+6)", lambda w: w["n"] * (w["k"] + 6))]
QMF = [DN, DNW, ("dm·min(n,4096)", lambda w: w["d"] * w["m"] * min(w["n"], 4096)),
       ("dnk(k+3)", lambda w: w["d"] * w["n"] * w["k"] * (w["k"] + 3))]
START = [("min(dn,512n,2¹⁹)", tried), ("k·min(dn,512n,2¹⁹)", lambda w: w["k"] * tried(w)), DN, DNK]


class Formula:
    """The non-negative factors that minimise the sum of squared relative errors of measured times."""

    def __init__(self, terms, lines, key):
        self.terms = terms
        times = np.array([l[key] for l in lines])
        a = np.array([[f(l) for _, f in terms] for l in lines]) / times[:, None]
        size = a.max(0)
        self.factors = scipy.optimize.nnls(a / size, np.ones(len(lines)))[0] / size
        ratios = a @ self.factors
        self.off = max(ratios.max(), 1 / ratios.min())

    def __call__(self, w):
        return sum(f * t(w) for f, (_, t) in zip(self.factors, self.terms))

    def text(self):
        return " + ".join(digits(1e9 * f) + name for f, (name, _) in zip(self.factors, self.terms) if f > 0)


def formulas(lines):
    """QMF for k up to 32: beyond, Adam steps U and V."""
    of = lambda kind: [l for l in lines if l["kind"] == kind and not l["shards"] and (kind != "qmf" or l["k"] <= 32)]
    all = {kind: Formula(QMF if kind == "qmf" else SPARSE if "sparse" in kind else DENSE, of(kind), "epoch")
           for kind in NAMES}
    all["start"] = Formula(START, of("qmf"), "start")
    return all


# --- the page -------------------------------------------------------------------------


def two(v):
    return "%.0f" % (round(v, -1) if v >= 100 else v) if v >= 9.95 else "%.2g" % v


def seconds(v):
    for limit, unit, name in ((0.9995, 1e-3, "ms"), (100, 1, "s"), (6000, 60, "min")):
        if v < limit:
            return two(v / unit) + " " + name
    return two(v / 3600) + " h"


def bytes_(v):
    return two(v / 1e6) + " MB" if v < 999.5e6 else two(v / 1e9) + " GB"


def thousands(v):
    return "{:,}".format(v).replace(",", " ") if v > 9999 else str(v)


def sizes(f, binary):
    """The table of some sizes; memory is that of MemoryOf, which the contender knows."""
    lines = []
    for d, n, density, k in ((500, 300, 1, 10), (2000, 4000, 1, 10), (20000, 2000, 0.05, 20), (20000, 20000, 0.05, 10),
                             (20000, 100000, 0.05, 10), (20000, 1000000, 0.05, 10)):
        w = {"d": d, "n": n, "k": k, "m": 8, "nonzero": density * d * n}
        kind = "nmf" if density == 1 else "nmf-sparse"
        told = [ask(binary, memory=dict(D=d, N=n, K=k, Method=m, Epochs=1, Holder="full" if density == 1 else ""))
                for m in ("NMF", "QMF")]
        lines.append(["%s × %s, %s" % (thousands(d), thousands(n), "all" if density == 1 else "%g %%" % (100 * density)),
                      k, bytes_(8 * w["nonzero"]), seconds(f[kind](w)) + ", " + seconds(f[kind + "-updates"](w)),
                      bytes_(told[0]), seconds(f["start"](w)), seconds(f["qmf"](w)), bytes_(told[1])])
    return table(["d × n, nonzero", "k", "matrix", "NMF, an epoch: Newton, updates", "memory", "QMF: start", "an epoch",
                  "memory"], lines)


def over_shards(f, lines):
    rows = []
    for l in lines:
        if l["shards"] == 8 and l["n"] == 4000:
            one = f[l["kind"]](dict(l, nonzero=0.05 * l["d"] * l["n"]))
            rows.append([NAMES[l["kind"]], seconds(one), seconds(l["step"]), seconds(l["reduce"]), bytes_(l["moved"])])
    return table(["an epoch of 2000 × 4000, k = 10", "one machine", "8 shards: the longest step", "the reduce",
                  "written and read"], rows)


def draw(lines, f):
    def panels(figure, axes):
        for (kind, name), color in zip(NAMES.items(), ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00")):
            some = [l for l in lines if l["kind"] == kind and l["k"] == 10 and l["density"] == 0.05 and l["m"] in (0, 8)]
            for a, key, fixed in ((axes[0], "n", {"d": 1000}), (axes[1], "d", {"n": 2000})):
                x = np.geomspace(1000, 64000) if key == "n" else np.geomspace(500, 20000)
                at = [dict(MIDDLE, **fixed, **{key: v, "m": 8}) for v in x]
                a.plot(x, [f[kind](dict(w, nonzero=0.05 * w["d"] * w["n"])) for w in at], color=color, label=name)
                here = [l for l in some if not l["shards"] and all_equal(l, fixed)]
                a.plot([l[key] for l in here], [l["epoch"] for l in here], "o", color=color, markersize=3)
            here = [l for l in some if l["shards"] and l["n"] == 4000]
            for key, style in (("step", "o-"), ("reduce", "o--")):
                axes[2].plot([l["shards"] for l in here], [l[key] for l in here], style, color=color, markersize=3,
                             fillstyle="none" if key == "reduce" else "full")
        for a, label in zip(axes, ("an epoch over n, d = 1000, k = 10", "an epoch over d, n = 2000, k = 10",
                                   "shards of 2000 × 4000: a step (dashed: the reduce)")):
            a.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds")
        axes[0].legend(fontsize=6)
        figure.tight_layout()

    plot(pages / "scale.svg", panels, nrows=1, ncols=3, figsize=(13, 4.2))


def all_equal(line, fixed):
    return all(line[k] == v for k, v in fixed.items())


def main():
    binary = build(["AVX-512"])["AVX-512"]
    file = pages / "scale.tsv"
    if arguments() != ["page"]:
        works = list(itertools.islice(grid(), 0, None, 12 if QUICK else 1))
        lines = []
        for w in works:
            lines.append(measure(binary, w))
            print(*("%.4g" % v if isinstance(v, float) else v for v in lines[-1].values()), file=sys.stderr, flush=True)
        if QUICK:
            return
        text = [FIELDS] + [["%.4g" % l[f] if isinstance(l[f], float) else str(l[f]) for f in FIELDS] for l in lines]
        file.write_text("".join("\t".join(t) + "\n" for t in text))
    head, *rest = (line.split("\t") for line in file.read_text().splitlines())
    number = lambda v: float(v) if "." in v or "e" in v else int(v)
    lines = [{k: v if k == "kind" else number(v) for k, v in zip(head, row)} for row in rest]
    f = formulas(lines)
    names = dict(NAMES, start="the start of QMF where it is chosen")
    fill(root / "docs" / "scale.md", {
        "sizes": sizes(f, binary), "shards": over_shards(f, lines),
        "formulas": table(["", "ns of one core", "off by at most"],
                          [[names[k], v.text(), "%.1f" % v.off] for k, v in f.items()])}, program="bench/scale")
    draw(lines, f)


main()
