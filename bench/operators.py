"""Times soft ranks by the number of samples beside torchsort and ott-jax, in turns on one core, and fills the table of
docs/measurements/operators.md.

    bench/run operators [quick]

Each contender ranks the same vector, forward and with the gradient of one loss, in float64. torchsort is isotonic
regression, another operator, and exact; ott-jax has as many targets as this package takes by default, at the ε of
both, and its own tolerance. Software that is not installed is left out.
"""

import os
import time
import warnings

from harness import QUICK, Rounds, benchmark, build, digits, fill, machine, pages, table, versions

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.update(XLA_FLAGS="--xla_cpu_multi_thread_eigen=false", JAX_PLATFORMS="cpu")
warnings.filterwarnings("ignore")

import numpy as np

SIZES = [256, 1000] if QUICK else [256, 1000, 10000, 100000, 1000000]
EPSILON, TARGETS = 0.01, 90
MOST = {"ott-jax": 10000}  # samples: beyond, a call takes many seconds or more memory than there is


def seconds(call, least=0.2):
    call()  # compiles, and fills caches
    begin, done = time.perf_counter(), 0
    while not done or time.perf_counter() - begin < least:
        call()
        done += 1
    return (time.perf_counter() - begin) / done


def with_torchsort(x, z):
    import torch
    import torchsort

    torch.set_num_threads(1)
    x, z = torch.tensor(x[None], requires_grad=True), torch.tensor(z[None])
    rank = lambda: torchsort.soft_rank(x, regularization="l2", regularization_strength=0.1)
    return {"forward": rank, "gradient": lambda: rank().backward(z)}


def with_ott(x, z):
    import jax
    import jax.numpy as jnp
    from ott.tools import soft_sort

    jax.config.update("jax_enable_x64", True)
    x, z = jnp.asarray(x), jnp.asarray(z)
    rank = lambda v: soft_sort.ranks(v, num_targets=min(TARGETS, len(v)), epsilon=EPSILON)
    forward, gradient = jax.jit(rank), jax.jit(jax.grad(lambda v: z @ rank(v)))
    return {"forward": lambda: jax.block_until_ready(forward(x)),
            "gradient": lambda: jax.block_until_ready(gradient(x))}


def main():
    ours, rounds = build(["AVX-512"], test=".")["AVX-512"], Rounds()
    for n in SIZES:
        for what in ("forward", "gradient"):
            pattern = f"^BenchmarkSoftRank$/^{what},{n}$"
            rounds.add(("SoftRank", what, n), lambda p=pattern: list(
                benchmark(ours, p, "200ms").values())[0]["ns/op"] * 1e-9)
        rng = np.random.default_rng(n)
        x, z = rng.normal(size=n), rng.normal(size=n)
        for name, make in (("torchsort", with_torchsort), ("ott-jax", with_ott)):
            if n > MOST.get(name, 1e9):
                continue
            try:
                calls = make(x, z)
            except ImportError:
                continue
            for what, call in calls.items():
                rounds.add((name, what, n), lambda c=call: seconds(c))
    rounds.run(1 if QUICK else 3)
    rows = []
    for name in ("SoftRank", "torchsort", "ott-jax"):
        for what in ("forward", "gradient"):
            keys = [(name, what, n) for n in SIZES]
            if any(k in rounds.times for k in keys):
                label = name + (", forward" if what == "forward" else ", forward and gradient")
                rows.append([label] + [digits(1e3 * rounds.median(k)) if k in rounds.times else "" for k in keys])
    made = f"{machine()};\n{versions('torch', 'torchsort', 'jax', 'ott-jax')}.\n"
    fill(pages / "operators.md", {"ranks": table(["ms a vector of n ="] + [str(n) for n in SIZES], rows), "machine": made})


if __name__ == "__main__":
    main()
