"""What the way through Python costs: import, the first call, a fit beside the command's, KL-NMF beside scikit-learn's.

python doors.py: one thread each, in turns; the least of several times. torchsort is timed where it is installed.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF

import quantmf
from quantmf._engine import program

warnings.simplefilter("ignore")


def least(*calls, times=5):
    """Return the least time of each call, in turns."""
    took = [[] for _ in calls]
    for _ in range(times):
        for call, of in zip(calls, took):
            begin = time.perf_counter()
            call()
            of.append(time.perf_counter() - begin)
    return [min(of) for of in took]


def python(code):
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def start():
    bare, imported, called = least(
        python("import numpy"),
        python("import numpy, quantmf; quantmf.soft_rank"),
        python("import numpy, quantmf; quantmf.soft_rank([1.0, 2.0])"),
    )
    print(
        f"import {1e3 * (imported - bare):.0f} ms after numpy, first call {1e3 * (called - imported):.0f} ms"
    )


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
        begin = time.perf_counter()
        theirs = NMF(12, beta_loss="kullback-leibler", solver="mu", max_iter=200, tol=0, random_state=0).fit(
            data
        )
        took = time.perf_counter() - begin
        for epochs in range(2, 41):
            begin = time.perf_counter()
            ours = quantmf.NMF(12, beta_loss="kl", max_iter=epochs, workers=1).fit(data)
            mine = time.perf_counter() - begin
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


start()
with tempfile.TemporaryDirectory() as folder:
    pipe(folder)
kullback()
ranks()
