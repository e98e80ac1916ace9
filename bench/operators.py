"""Times soft ranks by the number of samples beside those of other software, in turns on one core, and fills the table
of docs/measurements/operators.md.

    [LAPSUM=FOLDER] bench/run operators [quick]

Each contender ranks the same vector, forward and with the gradient of one loss, in float64. ott-jax and softjax's "ot"
solve a transport, too: ott-jax with as many targets as this package takes by default, at the ε of both, and its own
tolerance. The others are other operators: torchsort, torchpsort and softjax's "fast_soft_sort" isotonic regression,
LapSum sums of Laplace distributions. FOLDER is a checkout of github.com/gmum/LapSum, whose setup has no soft ranks
for the CPU, so they are compiled here. Software that is not there is left out.
"""

import math
import os
import time
import warnings

from harness import QUICK, Rounds, benchmark, build, digits, fill, machine, pages, table, versions

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.update(XLA_FLAGS="--xla_cpu_multi_thread_eigen=false", JAX_PLATFORMS="cpu")
warnings.filterwarnings("ignore")

import numpy as np

SIZES = [256, 1000] if QUICK else [80, 256, 1000, 5000, 100000, 1000000]
EPSILON, TARGETS = 0.01, 45
# samples: beyond, a call takes many seconds or more memory than there is
MOST = {"ott-jax": 5000, "softjax, ot": 1000, "softjax, fast_soft_sort": 100000, "LapSum, gradient": 5000}


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


def with_torchpsort(x, z):
    import torch
    import torchpsort

    torch.set_num_threads(1)
    x, z = torch.tensor(x[None], requires_grad=True), torch.tensor(z[None])
    rank = lambda: torchpsort.soft_rank(x, 0.1)
    return {"forward": rank, "gradient": lambda: rank().backward(z)}


def with_lapsum(x, z):
    if "LAPSUM" not in os.environ:
        raise ImportError
    import torch
    from torch.utils.cpp_extension import load

    torch.set_num_threads(1)
    source = os.path.join(os.environ["LAPSUM"], "lapsum/lapsum/rank/cpu/soft_rank.cpp")
    lap = load("soft_rank_cpu", [source], extra_cflags=["-O3", "-march=native"])
    x, z = torch.tensor(x[None]), torch.tensor(z[None])
    # both passes as its autograd function makes them
    return {"forward": lambda: lap.forward(x, 0.1), "gradient": lambda: (lap.forward(x, 0.1), lap.vjp(x, z, 0.1))}


def softjax(method):
    def contender(x, z):
        import jax
        import jax.numpy as jnp
        import softjax

        jax.config.update("jax_enable_x64", True)
        x, z = jnp.asarray(x), jnp.asarray(z)
        rank = lambda v: softjax.rank(v, method=method)
        forward, gradient = jax.jit(rank), jax.jit(jax.grad(lambda v: z @ rank(v)))
        return {"forward": lambda: jax.block_until_ready(forward(x)),
                "gradient": lambda: jax.block_until_ready(gradient(x))}

    return contender


CONTENDERS = {"torchsort": with_torchsort, "torchpsort": with_torchpsort, "LapSum": with_lapsum,
              "ott-jax": with_ott, "softjax, ot": softjax("ot"), "softjax, fast_soft_sort": softjax("fast_soft_sort")}


def main():
    ours, rounds = build(["AVX-512"], test=".")["AVX-512"], Rounds()
    for n in SIZES:
        for what in ("forward", "gradient"):
            pattern = f"^BenchmarkSoftRank$/^{what},{n}$"
            rounds.add(("SoftRank", what, n), lambda p=pattern: list(
                benchmark(ours, p, "200ms").values())[0]["ns/op"] * 1e-9)
        rng = np.random.default_rng(n)
        x, z = rng.normal(size=n), rng.normal(size=n)
        for name, make in CONTENDERS.items():
            if n > MOST.get(name, math.inf):
                continue
            try:
                calls = make(x, z)
            except ImportError:
                continue
            for what, call in calls.items():
                if n > MOST.get(f"{name}, {what}", math.inf):
                    continue
                rounds.add((name, what, n), lambda c=call: seconds(c))
    rounds.run(1 if QUICK else 3)
    rows = []
    for name in ("SoftRank", *CONTENDERS):
        keys = [[(name, what, n) for what in ("forward", "gradient")] for n in SIZES]
        if any(k in rounds.times for pair in keys for k in pair):
            rows.append([name] + ["/".join(digits(1e3 * rounds.median(k)) for k in pair if k in rounds.times)
                                  for pair in keys])
    of_torch, of_jax = versions("torch", "torchsort", "torchpsort"), versions("jax", "ott-jax", "softjax")
    made = f"{machine()};\n{of_torch},\n{of_jax.split(', ', 2)[2]}.\n"
    ranks = table(["ms, forward/and gradient, of n ="] + [str(n) for n in SIZES], rows)
    fill(pages / "operators.md", {"ranks": ranks, "machine": made})


if __name__ == "__main__":
    main()
