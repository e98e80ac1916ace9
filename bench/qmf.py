"""Measures the epochs and seconds that FitQMF takes to the losses at which the published code of QMF ends.

    bench/.work/env/bin/python bench/qmf.py FOLDER [BEFORE]

FOLDER has toy-std1.tsv.gz, toy-std2.tsv.gz and official.json: the paper's synthetic problem, and
losses of the published code on it after some epochs. BEFORE is a checkout of an earlier version of
this repository, which is timed beside this one. For each matrix and seed the program finds, by
bisection, the length of the shortest fit that ends at or below the published code's loss after 1000
epochs. Its seconds are those of the whole call, the start included. All seconds are those of the processor on one
thread, the least of three rounds in which all take turns. Of the published code only losses by epochs are
known. Fits with the paper's settings show what its method costs in this package. The program writes
docs/measurements/qmf.svg, and the table to standard output. It needs Go, numpy and matplotlib.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

here = pathlib.Path(__file__).resolve().parent
data = pathlib.Path(sys.argv[1]).resolve()
BEFORE = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
SETS = ["toy-std1", "toy-std2"]
SEEDS = range(1, 6)
ROUNDS = 3
LONG = 1000
BUDGETS = [2, 4, 8, 16, 32, 64, 128, 256]


def build(folder):
    """Builds the tests of this folder with this package and with the one in BEFORE."""
    builds = {"this version": folder / "now"}
    subprocess.run(["go", "test", "-c", "-o", str(builds["this version"]), "."], cwd=here, check=True)
    if BEFORE:
        commit = subprocess.run(["git", "log", "-1", "--format=%h"], cwd=BEFORE, capture_output=True, text=True, check=True).stdout.strip()
        module = folder / "before"
        module.mkdir()
        for name in ("doc.go", "loss_test.go", "qmf_test.go"):
            shutil.copy(here / name, module)
        (module / "go.mod").write_text((here / "go.mod").read_text().replace("=> ../", f"=> {BEFORE}"))
        builds[commit] = folder / "earlier"
        subprocess.run(["go", "test", "-c", "-o", str(builds[commit]), "."], cwd=module, check=True)
    return builds


def run(binary, name, way, seed, epochs):
    """Returns the published loss, and for each number of epochs the seconds and the losses."""
    out = subprocess.run([str(binary), "-test.run", "TestToyLosses$", "-toy", str(data)], capture_output=True, text=True, check=True,
                         env=dict(os.environ, QUANTMF_TOY=name, QUANTMF_WAY=way, QUANTMF_SEED=str(seed), QUANTMF_EPOCHS=" ".join(map(str, epochs)), GOMAXPROCS="1")).stdout
    published, fits = None, {}
    for line in out.splitlines():
        word, *rest = line.split()
        if word == "published":
            published = float(rest[0])
        elif word == "fit":
            fits[int(rest[0])] = float(rest[1]), [float(v) for v in rest[2:]]
    assert published and len(fits) == len(epochs), "qmf.py: no losses, or no data"
    return published, fits


def fewest(binary, name, way, seed):
    """Returns the fewest epochs that reach the published loss, or None where LONG are too few."""
    def end(epochs):
        published, fits = run(binary, name, way, seed, [epochs])
        return published, fits[epochs][1][-1]

    high = 8
    while True:
        published, loss = end(high)
        if loss <= published:
            break
        if high == LONG:
            return None
        high = min(2 * high, LONG)
    low = high // 2  # too few epochs, or 4, which is not tried
    while high - low > 1:
        middle = (low + high) // 2
        published, value = end(middle)
        if value <= published:
            high = middle
        else:
            low = middle
    return high


def counted(epochs):
    missing = epochs.count(None)
    return spread([e or LONG for e in epochs], "{:.0f}".format) + (f"; not reached by {missing} of {len(epochs)}, which count with {LONG}" if missing else "")


def spread(values, form):
    values = sorted(values)
    return f"{form(float(np.median(values)))} ({form(values[0])}–{form(values[-1])})"


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    builds = build(folder)
    print("| matrix, published loss | fit | version | epochs | seconds of the whole call | of the time of the version before |")
    print("|---|---|---|---|---|---|")
    curves = {}
    for name in SETS:
        found = {b: {s: fewest(binary, name, "default", s) for s in SEEDS} for b, binary in builds.items()}
        least = {b: {s: np.inf for s in SEEDS} for b in builds}
        for _ in range(ROUNDS):
            for s in SEEDS:
                for b, binary in builds.items():
                    epochs = found[b][s] or LONG
                    published, fits = run(binary, name, "default", s, [epochs])
                    least[b][s] = min(least[b][s], fits[epochs][0])
        for b in builds:
            ratio = ""
            if b == "this version" and len(builds) > 1:
                old = [c for c in builds if c != b][0]
                ratio = spread([least[b][s] / least[old][s] for s in SEEDS], "{:.2f}".format)
            print(f"| {name}, {published:.4g} | defaults | {b} | {counted(list(found[b].values()))} | {spread(least[b].values(), '{:.3f}'.format)} | {ratio} |", flush=True)
        traces = {}
        for b, binary in builds.items():
            fits = [run(binary, name, "default", s, BUDGETS)[1] for s in SEEDS]
            traces[b] = np.array([[(f[e][0], f[e][1][-1]) for e in BUDGETS] for f in fits])
        paper = [run(builds["this version"], name, "paper", s, [LONG])[1][LONG] for s in SEEDS]
        first = [next((e for e, v in enumerate(losses) if v <= published), None) for _, losses in paper]
        worked = [t * (e or LONG) / LONG for (t, _), e in zip(paper, first)]
        print(f"| {name}, {published:.4g} | the paper's settings | this version | {counted(first)} | {spread(worked, '{:.2f}'.format)} | |", flush=True)
        curves[name] = published, traces, paper
    plot(curves, list(builds))


def plot(curves, builds):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "quantmf"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SETS), figsize=(11, 4.2))
    for a, name in zip(axes, SETS):
        published, traces, paper = curves[name]
        for b, color, style in zip(builds, ("#0072B2", "#D55E00"), ("o-", "s--")):
            median = np.median(traces[b], axis=0)
            label = "FitQMF" if b == "this version" else f"FitQMF at {b}"
            a.plot(median[:, 0], median[:, 1], style, color=color, label=label, markersize=4)
            a.fill_between(median[:, 0], traces[b].min(axis=0)[:, 1], traces[b].max(axis=0)[:, 1], color=color, alpha=0.2, linewidth=0)
        total = np.median([t for t, _ in paper])
        losses = np.array([l for _, l in paper])
        at = total * np.arange(1, LONG + 1) / LONG
        a.plot(at, np.median(losses, axis=0)[1:], ":", color="#56B4E9", label="the paper's settings", linewidth=2)
        a.fill_between(at, losses.min(axis=0)[1:], losses.max(axis=0)[1:], color="#56B4E9", alpha=0.2, linewidth=0)
        a.axhline(published, color="black", linewidth=1, linestyle="-.", label="published code after 1000 epochs")
        a.set(xscale="log", yscale="log", title=name, xlabel="seconds of one core", ylabel="loss (KL per entry)")
        a.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(here.parent / "docs" / "measurements" / "qmf.svg", metadata={"Date": None})


main()
