"""Writes docs/measurements/speed.md and its plot from the measurements of speed.py."""

import importlib.metadata
import os
import pathlib
import platform
import re
import subprocess
import tempfile

from compare import table
from speed import BATCH, BUILDS, MAIN, NAMES, QUICK, RANKS, ROUNDS, SETTINGS, SHAPES, label, toy_seconds


def figure(v):
    """Returns a number with three digits."""
    if v >= 100:
        return "%.0f" % v
    return "%.3g" % v


def times(r):
    return (figure(r) if r >= 10 else "%.2f" % r) + "×"


def spread(c, unit):
    t = sorted(v / unit for v in c.times.values())
    middle = t[len(t) // 2] if len(t) % 2 else (t[len(t) // 2 - 1] + t[len(t) // 2]) / 2
    return "%s (%s–%s)" % (figure(middle), figure(t[0]), figure(t[-1]))


def summary(m):
    """Returns the tables of the summary: how many times faster than other software each build is, and single figures."""
    builds = BUILDS[::-1]
    lines = []
    for setting in (s for s in (MAIN, (256, 16, 1e-3)) if s in SETTINGS):
        group = label(setting)
        for threshold in ("1e-3", "1e-9"):
            name = "ott-jax " + threshold
            lines.append(["a cold row, ε = %s, than ott-jax at %s (under vmap)" % (("%g" % setting[2]), threshold)] + ["%s (%s)" % tuple(
                times(m.ratio(group, m.fastest(group, name, *form), "cold " + build)) for form in ((), ("vmap",))) for build in builds])
    for name in ("scikit-learn", "torch float64"):
        for shape in SHAPES:
            group = "NMF %dx%dx%d" % shape
            lines.append(["an update of %s, than %s" % (group, name)] + [times(m.ratio(group, m.fastest(group, name), build)) for build in builds])
    least = []
    for build in builds:
        ratio = {s: m.ratio("NMF %dx%dx%d" % s, m.fastest("NMF %dx%dx%d" % s, "scikit-learn"), build) for s in RANKS}
        worst = min(ratio, key=ratio.get)
        least.append("%s (at %d)" % (times(ratio[worst]), worst[2]))
    lines.append(["an update of NMF 500x256, the least over %s components, than scikit-learn" % ", ".join(str(s[2]) for s in RANKS)] + least)
    main = label(MAIN)
    single = [["a warm row, forward and gradients, over torchsort's forward and backward", "%.2f of its time" % (1 / m.ratio(main, m.fastest(main, "torchsort"), "warm native"))]]
    for group, what in (("QMF", "an epoch of QMF, 500×256, k=10, m=16"), ("QMFQ", "an epoch of QMFQ, 160×80, k=8, m=8, 100 updates")):
        single.append([what, "%s ms" % figure(1000 * m.median(group, "native"))])
    seconds = toy_seconds()
    if seconds:
        for name, key in (("compiled", "compiled graph"), ("as published", "as published (eager)")):
            single.append(["time to the authors' loss, their code %s" % name, "%s faster" % times(1000 * seconds["toy QMF"][key] / m.median("loss", "native"))])
    groups = ["NMF %dx%dx%d" % s for s in SHAPES] + ["QMF", "QMFQ"]
    single.append(["the most allocations of an epoch after the first, of NMF, QMF and QMFQ", "%g" % max(m.metric(g, "native", "allocs/epoch") for g in groups)])
    for group, what in (("wasm row", "a warm row"), ("wasm NMF", "an epoch of NMF 500x256x10")):
        single.append(["%s, wasm in node over native Go alone" % what, "%.2f of the time" % (1 / m.ratio(group, "native", "wasm"))])
    return table(["times faster"] + [SHORT[b] for b in builds], lines) + "\n\n" + table(["with AVX-512", ""], single)


# SHORT names the builds in the summary.
SHORT = {**NAMES, "purego": "Go alone"}


def profile(m, key):
    """Returns the top of a profile of one contender."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "cpu")
        c = m.by[key]
        c.run("-test.cpuprofile=" + file, "-test.benchtime=1s")
        text = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=8", c.command[0], file], capture_output=True, text=True).stdout
    lines = [l.replace("github.com/quantmf/quantmf", "quantmf") for l in text.splitlines()]
    at = next(i for i, l in enumerate(lines) if "flat%" in l)
    return "\n".join(lines[at:])


def remark(m, key):
    """Says where the time of a contender goes, and what would save time."""
    group, name = key
    if name.startswith("cold"):
        warm = name.replace("cold", "warm")
        peer = {t: m.fastest(group, "ott-jax " + t) for t in ("1e-3", "1e-9")}
        return ("A third of the time of a row is five sweeps with the m × m system after each, another third the gradients in all six arguments, and a fifth T with the order "
                "of the samples that it needs. Memory allocation is an eighth of the whole. A warm row, eight of which share the vectors of their systems, is %s as fast as ott-jax at 1e-3 and %s at 1e-9. "
                "Fewer sweeps would save more than faster ones: a start that is right to a few per cent saves two of five. Without assembly the same loops take four to five times as long, "
                "because Go's compiler emits no vector instructions." % (times(m.ratio(group, peer["1e-3"], warm)), times(m.ratio(group, peer["1e-9"], warm))))
    if group.startswith("NMF") and name.endswith("avx2"):
        return ("quotient4 computes UV and one IEEE division a cell, twice an update. logSum4 computes one logarithm a cell for the loss in `History`, which no other contender computes. "
                "AVX2 has half the width and half the registers of AVX-512: a division and a logarithm cost twice as much there. With many components products take nearly all of the time, "
                "and those of the other contenders are fused, twice as many a cycle.")
    if group.startswith("NMF"):
        return ("Without assembly some 80 multiplications and additions, two divisions and a logarithm a cell, one after "
                "another, take at least 1.1 ms at 500x256x10. Only vector instructions from the compiler would take less.")
    return ""


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.M).group(1)
    known = re.search(r"^cpu family\s*:\s*(.*)$", text, re.M), re.search(r"^model\s*:\s*(.*)$", text, re.M)
    sizes = dict(l.split(":", 1) for l in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines() if ":" in l)
    caches = ", ".join("%s %s" % (k, sizes[k + " cache"].strip()) for k in ("L1d", "L2", "L3") if k + " cache" in sizes)
    virtual = ", a virtual machine" if "Hypervisor vendor" in sizes else ""
    return "%s (family %s, model %s, AVX-512), %d cores of which one is used; all cores' caches: %s%s. %s, %s" % (
        model, known[0].group(1), known[1].group(1), os.cpu_count(), caches, virtual, platform.system(), platform.machine())


def versions():
    names = ["ott-jax", "jax", "jaxlib", "POT", "torch", "torchsort", "scikit-learn", "numpy", "scipy"]
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True).stdout.strip()
    node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    return "%s, node %s, Python %s, %s" % (go, node, platform.python_version(), ", ".join("%s %s" % (n, importlib.metadata.version(n)) for n in names))


def rows(m, setting):
    group = label(setting)
    fast = {t: m.fastest(group, "ott-jax " + t) for t in ("1e-3", "1e-9")}
    lines = []
    for c in (c for c in m.all if c.group == group):
        ours = c.name.split()[0] in ("cold", "warm")
        name, note = c.name, m.notes.get((group, c.name), "")
        if ours:
            kind, build = c.name.split()
            name = "**quantmf, %s, %s**" % (kind, NAMES[build])
            note = m.notes[group, "cold"] if kind == "cold" else "%.2f passes" % c.metric("passes/op")
        if c.name in fast.values():
            name += " †"
        if c.name.startswith("torchsort"):
            note = "another operator"
        if not c.times:
            lines.append([name, "–", "", "", note])
            continue
        lines.append([name, spread(c, 1e-6)] + ([times(m.ratio(group, fast[t], c.name)) for t in fast] if ours else ["", ""]) + [note])
    return table(["%d samples, %d levels, ε = %g" % setting, "µs a row", "faster than ott-jax at 1e-3", "at 1e-9", "error; remarks"], lines)


def updates(m):
    lines = []
    for shape in SHAPES + RANKS:
        group = "NMF %dx%dx%d" % shape
        best = m.fastest(group, "scikit-learn")
        for c in (c for c in m.all if c.group == group):
            name = "**quantmf, %s**" % NAMES[c.name] if c.name in NAMES else c.name
            own = c.name in NAMES
            lines.append([group[4:], name, spread(c, 1e-3), times(m.ratio(group, best, c.name)) if own else "", times(m.ratio(group, "NumPy", c.name)) if own else "",
                          times(m.ratio(group, "torch float64", c.name)) if own else ""])
    return table(["shape", "", "ms an update of V and U", "faster than scikit-learn", "NumPy", "torch"], lines)


def epochs(m):
    lines = []
    for group, what in (("QMF", "epoch of QMF, 500×256, k=10, m=16, all rows in one batch"), ("QMFQ", "epoch of QMFQ, 160×80, k=8, m=8, 100 updates")):
        for build in BUILDS:
            lines.append([what, NAMES[build], spread(m.by[group, build], 1e-3)])
    seconds = toy_seconds()
    if seconds:
        for build in BUILDS:
            c = m.by["loss", build]
            lines.append(["fit of toy-std1 to %.4f in %d epochs (theirs: 0.0854 after 1000)" % (c.metric("loss"), c.metric("epochs")), NAMES[build], spread(c, 1e-3)])
        for name, key in (("compiled", "compiled graph"), ("as published", "as published (eager)")):
            lines.append(["1000 epochs of the authors' code on it, " + name, "not run here", "%.0f" % (1e6 * seconds["toy QMF"][key])])
            key = key.split(" (")[0]
            lines.append(["an epoch of the authors' QMFQ on it, " + name, "not run here", "%.0f" % (1e3 * seconds["toy QMFQ"][key])])
    return table(["", "", "ms"], lines)


TEXT = """# Speed beside other software

`bench/run` measures and writes this page. The machine is {machine}.

![Times beside other software](speed.png)

## In short

A row is solved two orders of magnitude sooner than by ott-jax at the same accuracy. An update of NMF with 10 or 20
components takes about half of scikit-learn's time with vectors, and twice as long in Go alone; with 64 components it is slower than scikit-learn's. The builds are explained [below](#how-it-was-measured).

{summary}

## How it was measured

`bench/run` runs all contenders in one go on one core, each once a round and in turn, for {rounds} (the slowest settings of ott-jax every third), after one call to warm up. Tables give medians over rounds with the extremes in brackets. A ratio is the median of the ratios within a round. The times to compile, of the first call and to make the input are left out.

Versions: {versions}. Each contender has one thread (`taskset`, `OMP_NUM_THREADS=1`, one worker) and computes in float64 unless its row says otherwise.

There are three builds of this package: with its assembly (AVX-512 here), with the assembly limited to AVX2, and with `-tags purego`, the loops in Go that other processors run. All give the same bits.

## A row: forward, and gradients in x, b and q

{batch} random rows of a setting (`reference/peers/compare.py` says which), the same for all contenders.

- **ott-jax** is its Sinkhorn solver with implicit differentiation, compiled by jit, at its default threshold of 1e-3 and at 1e-9, in log and in kernel mode. The rows go either in lock step (`vmap`) or one after the other in one compiled loop (`lax.map`). † marks the fastest form, to which ratios refer.
- **quantmf, cold**, is `Solve`, `Quantile` and `QuantileVJP`, which also gives the gradients in a, y and ε. **Warm** is a row as a fit visits it: its solution is nearly known, and eight rows are solved together where there are vectors. Both always stop at 1e-9.
- **torchsort** is another operator, without targets or weights. It is listed as the fastest soft rank that was found.
- **Errors** are differences from this package at 1e-13 on the first eight rows: the largest in T (whose range is about m/2), and the largest in a gradient relative to its largest entry.

{rows}

## NMF under KL

All contenders make multiplicative updates of random positive matrices. scikit-learn is `non_negative_factorization(solver="mu", beta_loss="kullback-leibler")` without checks of the loss, on the matrix and on its transpose; ratios refer to the faster of the two. NumPy and torch are the textbook formulas with buffers that are used again. An update of quantmf includes the loss of its `History`, which the others do not compute.

{updates}

## Epochs and fits

Losses and times of the authors' code come from `official.json` in the folder that `bench/run` is given. That code was run once on one core; its times are right to a factor of 2. The fit is `FitQMF` at the authors' ε = 0.01 and m = 8, from `StartScores` without shrinkage, with the fewest epochs of a list that reach their loss. Its time is that of the whole call.

{epochs}

## wasm

{wasm}

{fused}{profiles}"""


def text(m):
    wasm = table(["", "native, purego, µs", "wasm in node, µs", "wasm over native"],
                 [[what, spread(m.by[g, "native"], 1e-6), spread(m.by[g, "wasm"], 1e-6), "%.2f" % (1 / m.ratio(g, "native", "wasm"))]
                  for g, what in (("wasm row", "warm row, 256 × 16, ε = 1e-2"), ("wasm NMF", "epoch of NMF 500x256x10"))])
    fused = ""
    if m.has("fused", "fused"):
        f = m.by["fused", "fused"].metric
        fused = """## The price of the same bits

Products are rounded before they are added and never fused, so that every processor gives the same bits. `bench/fused_amd64.s` has half an update of an NMF in AVX-512 (256 samples, k = 10) in both ways, which were timed in turn: %.0f ns a row with separate multiplications and additions, %.0f ns fused, **%.2f×**.

""" % (f("rounded-ns"), f("fused-ns"), f("rounded/fused"))
    profiles = ""
    for key in ((label(MAIN), "cold native"), ("NMF 500x256x10", "avx2"), ("NMF 6000x304x10", "purego")) if not QUICK else ():
        profiles += "\n**%s, %s**\n\n%s\n\n```\n%s\n```\n" % (key[0], key[1].replace(key[1].split()[-1], NAMES[key[1].split()[-1]]), remark(m, key), profile(m, key))
    if profiles:
        profiles = "## Where the time goes\n" + profiles
    return TEXT.format(rounds="%d round" % ROUNDS + ("s" if ROUNDS > 1 else ""), machine=machine(), versions=versions(), batch=BATCH,
                       summary=summary(m),
                       rows="\n\n".join(rows(m, s) for s in SETTINGS), updates=updates(m), epochs=epochs(m), wasm=wasm, fused=fused, profiles=profiles).rstrip() + "\n"


def plot(m, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), gridspec_kw={"width_ratios": [1.25, 1]})
    greys, blues = ["#8a8a8a", "#5a5a5a", "#b8b8b8"], ["#9ecae1", "#4292c6", "#08519c"]

    def bars(axes, groups, names, series):
        wide = 0.8 / len(series)
        for s, (name, colour, value) in enumerate(series):
            at = [g + (s - (len(series) - 1) / 2) * wide for g in range(len(groups))]
            axes.bar(at, [value(g) or 0 for g in groups], wide * 0.92, color=colour, label=name)
        axes.set_yscale("log")
        axes.set_xticks(range(len(groups)), names)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low / 3, high * 12)

    def median(name):
        return lambda g: m.median(g, name) * 1e6 if m.has(g, name) else None

    settings = [label((256, 16, e)) for e in (1e-1, 1e-2, 1e-3)]
    bars(left, settings, ["ε = 1e-1", "ε = 1e-2", "ε = 1e-3"],
         [("ott-jax, 1e-3", greys[0], lambda g: m.median(g, m.fastest(g, "ott-jax 1e-3")) * 1e6),
          ("ott-jax, 1e-9", greys[1], lambda g: m.median(g, m.fastest(g, "ott-jax 1e-9")) * 1e6),
          ("POT, 1e-9, forward alone", greys[2], median("POT 1e-9, forward alone"))]
         + [("quantmf cold, " + NAMES[b], c, median("cold " + b)) for b, c in zip(BUILDS, blues)])
    left.set_title("256 samples onto 16 levels, with gradients: µs a row", fontsize=10, loc="left")
    groups = ["NMF %dx%dx%d" % s for s in SHAPES]
    milli = lambda f: lambda g: f(g) * 1e3
    bars(right, groups, [g[4:].replace("x", "×") for g in groups],
         [("scikit-learn", greys[0], milli(lambda g: m.median(g, m.fastest(g, "scikit-learn")))), ("NumPy", greys[2], milli(lambda g: m.median(g, "NumPy"))),
          ("torch", greys[1], milli(lambda g: m.median(g, "torch float64")))]
         + [("quantmf, " + NAMES[b], c, milli(lambda g, b=b: m.median(g, b))) for b, c in zip(BUILDS, blues)])
    right.set_title("NMF under KL: ms an update", fontsize=10, loc="left")
    fig.tight_layout()
    fig.savefig(file, dpi=110, metadata={"Software": None})
