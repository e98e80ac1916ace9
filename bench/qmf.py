"""Measures the epochs and seconds that FitQMF takes to the losses at which the published code of QMF ends, and
fills the table of docs/measurements/qmf.md and its plot.

    bench/run qmf FOLDER [BEFORE] [quick]

FOLDER has toy-std1.tsv.gz, toy-std2.tsv.gz and official.json: the paper's synthetic problem, and losses of the
published code on it. BEFORE is the contender as built at an earlier version, which is timed beside this one. For each
matrix and seed the length of the shortest fit that ends at or below the published loss after 1000 epochs is found by
bisection. Seconds are the processor's for the whole call, the least of three rounds in turns.
"""

import gzip
import json
import pathlib
import statistics
import tempfile

from harness import QUICK, arguments, build, fill, fit, pages, plot, spread, table

import numpy as np

data, *before = (pathlib.Path(a).resolve() for a in arguments())
SETS = ["toy-std1", "toy-std2"]
SEEDS = range(1, 2 if QUICK else 6)
ROUNDS = 1 if QUICK else 3
LONG = 1000
BUDGETS = [2, 4, 8, 16, 32, 64, 128, 256]


def load(name, folder):
    with gzip.open(data / (name + ".tsv.gz"), "rt") as f:
        next(f)
        x = np.array([[float(v) for v in line.rstrip("\n").split("\t")[1:]] for line in f])
    x.tofile(folder / name)
    return dict(D=x.shape[0], N=x.shape[1], X=str(folder / name), K=8, Levels=8, Method="QMF")


def fewest(run, published):
    """Returns the fewest epochs that reach the published loss, None where LONG are too few."""
    high = 8
    while run(high)["Losses"][-1] > published:
        if high == LONG:
            return None
        high = min(2 * high, LONG)
    low = high // 2  # too few epochs, or 4, which is not tried
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if run(middle)["Losses"][-1] <= published else (middle, high)
    return high


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    ways = {"defaults": build(["AVX-512"])["AVX-512"]}
    if before:
        ways["defaults before"] = str(before[0])
    official = json.loads((data / "official.json").read_text())
    lines, curves, record = [], {}, {}
    for name in SETS:
        x, published = load(name, folder), official[name]["QMF"]["1000"]
        run = lambda way, seed, epochs: fit(ways[way], **x, Settings="free", Seed=seed, Epochs=epochs, Warm=0.02)
        found = {(w, s): fewest(lambda e: run(w, s, e), published) for w in ways for s in SEEDS}
        least = dict.fromkeys(found, np.inf)
        for _ in range(ROUNDS):
            for w, s in found:
                least[w, s] = min(least[w, s], run(w, s, found[w, s] or LONG)["Total"])
        for w in ways:
            ratio = spread([least["defaults", s] / least[w, s] for s in SEEDS], 2) if w != "defaults" else ""
            lines.append(["%s, %.4g" % (name, published), w, spread([found[w, s] or LONG for s in SEEDS]),
                          spread([least[w, s] for s in SEEDS]), ratio])
        paper = [fit(ways["defaults"], **x, Settings="paper", Seed=s, Epochs=LONG) for s in SEEDS]
        first = [next((e + 1 for e, v in enumerate(p["Losses"]) if v <= published), LONG) for p in paper]
        lines.append(["", "the paper's settings", spread(first),
                      spread([p["Total"] * e / LONG for p, e in zip(paper, first)]), ""])
        traces = {w: [[(f["Total"], f["Losses"][-1]) for f in (run(w, s, e) for s in SEEDS)] for e in BUDGETS]
                  for w in ways}
        curves[name] = published, traces, paper
        record[name] = {"epochs": {"%s %d" % k: v for k, v in found.items()},
                        "seconds": {"%s %d" % k: v for k, v in least.items()}}
    fill(pages / "qmf.md", {"losses": table(["matrix, published loss", "fit", "epochs", "seconds",
                                             "now, of the time before"], lines)}, record)

    def draw(figure, axes):
        for a, (name, (published, traces, paper)) in zip(axes, curves.items()):
            for w, style in zip(traces, ("o-", "s--")):
                points = np.median(traces[w], axis=1)
                a.plot(points[:, 0], points[:, 1], style, label="FitQMF, " + w, markersize=4)
            total = statistics.median(p["Total"] for p in paper)
            a.plot(total * np.arange(1, LONG + 1) / LONG, np.median([p["Losses"] for p in paper], axis=0), ":",
                   label="the paper's settings")
            a.axhline(published, color="black", linewidth=1, label="published code after 1000 epochs")
            a.set(xscale="log", yscale="log", title=name, xlabel="seconds of one core", ylabel="loss (KL per entry)")
            a.legend(fontsize=8)
        figure.tight_layout()

    if not QUICK: plot(pages / "qmf.svg", draw, nrows=1, ncols=len(SETS), figsize=(11, 4.2))


main()
