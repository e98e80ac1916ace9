"""What the way through Python costs: import, the first call, a fit beside the command's, KL-NMF beside scikit-learn's.

python doors.py: one core, in turns; the least processor time of several, of Python and of what it starts. Linux.
torchsort is timed where it is installed.

python doors.py FOLDER: BQMFImputer beside scikit-learn's imputers, each as it is by default, with a tenth of the
cells hidden; the tables of docs/measurements/bqmf.md, FOLDER having those that scikit-learn lacks (cd paper && go
run . data), at most 160 features and 200 samples at even steps. The others are given standard scores. Errors are
absolute, over the deviation of the feature, with what is filled in brought into the range that it has shown.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import gzip
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF

import quantmf
from quantmf._engine import engine, program

warnings.simplefilter("ignore")


def seconds():
    """Return the processor time of this process, of those that it started and that have ended, and of the engine."""
    ended = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    threads = Path(f"/proc/{engine().process.pid}/task").glob("*/schedstat")
    return sum(of.ru_utime + of.ru_stime for of in ended) + sum(
        1e-9 * int(of.read_text().split()[0]) for of in threads
    )


def least(*calls, times=5):
    """Return the least time of each call, in turns."""
    took = [[] for _ in calls]
    for _ in range(times):
        for call, of in zip(calls, took):
            begin = seconds()
            call()
            of.append(seconds() - begin)
    return [min(of) for of in took]


START = """
import resource
def now():
    of = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return 1e3 * sum(of.ru_utime + of.ru_stime for of in of)
times = [now()]
import numpy
times.append(now())
import quantmf
quantmf.soft_rank
times.append(now())
quantmf.soft_rank([1.0, 2.0])
quantmf._engine._close()
times.append(now())
print(*numpy.diff(times))
"""


def start():
    run = lambda: subprocess.run([sys.executable, "-c", START], check=True, capture_output=True)  # noqa: E731
    numpy, ours, call = np.min([[float(ms) for ms in run().stdout.split()] for _ in range(20)], 0)
    print(f"import {numpy + ours:.0f} ms, {numpy:.0f} of them numpy's; first call {call:.0f} ms")


def pipe(folder):
    x = np.random.default_rng(1).gamma(1, 1, (2000, 1000))
    np.save(folder + "/x.npy", x.T)
    command = [
        program(),
        "fit",
        "-method",
        "nmf",
        "-k",
        "10",
        "-epochs",
        "60",
        "-workers",
        "1",
        "-loss",
        "kl",
    ]
    command += ["-compare", "none", "-progress", "none", "-o", "m.nmf", "x.npy"]
    ours, theirs = least(
        lambda: quantmf.NMF(10, beta_loss="kl", max_iter=60, workers=1).fit(x),
        lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True),
    )
    print(
        f"a fit through the pipe {ours:.2f} s, by the command with its files {theirs:.2f} s: {ours / theirs:.2f}"
    )


def kullback():
    of = np.random.default_rng(2)
    rates = of.gamma(0.2, 1, (2000, 12)) @ of.gamma(0.2, 1, (12, 1000)) * 0.5
    x = of.poisson(rates).astype(float)
    x = x[:, x.sum(0) > 0][x.sum(1) > 0]
    for name, data in (("dense", x), ("csr", sparse.csr_matrix(x))):
        begin = seconds()
        theirs = NMF(12, beta_loss="kullback-leibler", solver="mu", max_iter=200, tol=0, random_state=0).fit(
            data
        )
        took = seconds() - begin
        for epochs in range(2, 41):
            begin = seconds()
            ours = quantmf.NMF(12, beta_loss="kl", max_iter=epochs, workers=1).fit(data)
            mine = seconds() - begin
            if ours.reconstruction_err_ <= theirs.reconstruction_err_:
                break
        error = ours.reconstruction_err_ / theirs.reconstruction_err_
        print(
            f"KL-NMF, {name}: {took:.2f} s of scikit-learn, {mine:.3f} s in {epochs} epochs: "
            f"{took / mine:.1f} times sooner, error {error:.4f} of its"
        )


def ranks():
    try:
        import torch
        import torchsort
    except ImportError:
        return
    torch.set_num_threads(1)
    x = torch.randn(1000, 256, dtype=torch.float64, requires_grad=True)
    ours, theirs = least(
        lambda: quantmf.soft_rank(x, workers=1).sum().backward(),
        lambda: torchsort.soft_rank(x, regularization_strength=0.1).sum().backward(),
        times=10,
    )
    print(f"soft ranks of 1000 × 256 with gradient {1e3 * ours:.0f} ms, torchsort {1e3 * theirs:.0f} ms")


TABLES = "tcga-laml/exp tcga-kirc/mirna sotu-wordcounts/counts pbmc3k-small/counts orl-faces-23x28/pixels \
golub-leukemia/exp tcga-brca/methy"


def tables(folder):
    from sklearn import datasets

    for name in ("wine", "breast_cancer", "diabetes", "digits"):
        yield name, getattr(datasets, "load_" + name)().data
    for name in TABLES.split():
        with gzip.open(f"{folder}/{name}.tsv.gz", "rt") as file:
            next(file)
            yield name, np.array([line.split("\t")[1:] for line in file], float).T


def imputers(folder):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    everything = []
    for name, x in tables(folder):
        for axis, most in ((0, 200), (1, 160)):
            size = x.shape[axis]
            x = x.take(np.arange(min(size, most)) * size // min(size, most), axis)
        hidden = np.random.default_rng(1).random(x.shape) < 0.1
        holes = np.where(hidden, np.nan, x)
        keep = np.array([len(np.unique(of[~np.isnan(of)])) > 2 for of in holes.T])
        x, hidden, holes = x[:, keep], hidden[:, keep], holes[:, keep]
        mean, deviation = np.nanmean(holes, 0), np.nanstd(holes, 0)
        z, found = (holes - mean) / deviation, []
        for imputer in (quantmf.BQMFImputer(workers=1), KNNImputer(), IterativeImputer(random_state=0)):
            begin = seconds()
            filled = imputer.fit_transform(holes if isinstance(imputer, quantmf.BQMFImputer) else z)
            took = seconds() - begin
            if isinstance(imputer, quantmf.BQMFImputer):
                filled = (filled - mean) / deviation
            filled = np.clip(filled, np.nanmin(z, 0), np.nanmax(z, 0))
            found += [np.abs(filled - (x - mean) / deviation)[hidden].mean(), took]
        everything.append(found)
        print(f"{name}, {x.shape[1]} × {x.shape[0]}: ", *(f"{of:.3f}" for of in found), flush=True)
    for i, name in ((2, "KNNImputer"), (4, "IterativeImputer")):
        error, time = np.exp(np.log(np.array(everything)[:, [0, 1]] / np.array(everything)[:, [i, i + 1]]).mean(0))
        print(f"of {name}'s: error {error:.2f}, time {time:.3f}")


if len(sys.argv) > 1:
    imputers(sys.argv[1])
    sys.exit()
start()
with tempfile.TemporaryDirectory() as folder:
    pipe(folder)
kullback()
ranks()
