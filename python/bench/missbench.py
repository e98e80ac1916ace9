"""Predicts hidden cells under the thirteen patterns of MissBench, of tables that R's packages ship.

    python missbench.py TABLES [RESULTS] [-every N] [-methods "A,B"]

TABLES is a folder of tables as write.csv writes them, which missbench.R fills; RESULTS collects lines of
table, pattern, method, error and seconds, and a later run makes what they lack. Patterns and their settings
are those of MissBench (github.com/jacobf18/tabular), at a share of .4, made by tabimpute 0.0.4; the others
are the plugins of hyperimpute 0.1.17 and scikit-learn's KNNImputer, which its scripts call, by their
defaults and on standard scores. HyperImpute needs numpy 1.26.4, pandas 2.2.3, scikit-learn 1.5.2 and
xgboost 2.1.4. The error is the root of the mean square over hidden cells of columns in units of their
deviations.
"""

import argparse
import csv
import pathlib
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import pandas as pd
import torch
from hyperimpute.plugins.imputers import Imputers
from sklearn.impute import KNNImputer
from tabimpute.prior import training_set_generation as made

import quantmf

NETWORK = {
    "num_layers_upper": 3,
    "hidden_lower": 1,
    "hidden_upper": 100,
    "activation": "relu",
    "seed": 42,
    "neighbor_type": "random",
}
BANDIT = {
    "algorithm": "epsilon_greedy",
    "pooling": False,
    "epsilon": 0.4,
    "epsilon_decay": 0.99,
    "random_seed": 42,
}
BLOCKS = {"N": 100, "T": 50, "row_blocks": 10, "col_blocks": 10, "convolution_type": "mean"}
PATTERNS = {
    "at random": made.MCARPattern({"p_missing": 0.4}),
    "by other columns": made.MARPattern({"p_missing": 0.4}),
    "by a network": made.MARNeuralNetwork({"p_missing": 0.4, "mar_config": NETWORK}),
    "blocks by a network": made.MARBlockNeuralNetwork({"p_missing": 0.4, "mar_block_config": BLOCKS}),
    "bandit": made.MARSequentialBandit({"p_missing": 0.4, "mar_sequential_bandit_config": BANDIT}),
    "by themselves": made.MNARPattern({"p_missing": 0.4}),
    "panel": made.MNARPanelPattern({}),
    "polarization": made.MNARPolarizationPattern({"threshold_quantile": 0.25}),
    "soft polarization": made.MNARSoftPolarizationPattern(
        {"soft_polarization_alpha": 2.5, "soft_polarization_epsilon": 0.05}
    ),
    "latent factors": made.MNARLatentFactorPattern({"latent_rank_low": 1, "latent_rank_high": 5}),
    "clusters": made.MNARClusterLevelPattern(
        {"cluster_level_n_row_clusters": 5, "cluster_level_n_col_clusters": 4}
    ),
    "censoring": made.MNARCensoringPattern({"censor_quantile": 0.25}),
    "two phases": made.MNARTwoPhaseSubsetPattern({"two_phase_cheap_fraction": 0.4}),
}


def scored(impute):
    """Has standard scores imputed."""

    def scores(x):
        mean, deviation = np.nanmean(x, 0), np.nanstd(x, 0)
        deviation[deviation == 0] = 1
        return mean + deviation * np.asarray(impute((x - mean) / deviation))

    return scores


def plugin(name):
    return scored(lambda x: Imputers().get(name).fit_transform(pd.DataFrame(x)))


METHODS = {
    "BQMF": lambda x: quantmf.BQMFImputer().fit_transform(x),
    "KNNImputer": scored(lambda x: KNNImputer().fit_transform(x)),
    **{name: plugin(name) for name in ("mean", "softimpute", "ice", "missforest", "mice", "hyperimpute")},
}


def holes(x, pattern, seed):
    """Returns the rows of x of which the pattern leaves something, and these without the cells that it hides;
    None where it leaves less than two cells of a column."""
    for attempt in range(10):
        torch.manual_seed(seed + attempt)
        np.random.seed(seed + attempt)
        try:
            missing = np.isnan(
                PATTERNS[pattern]._induce_missingness(torch.from_numpy(x.astype(np.float32))).numpy()
            )
        except Exception as error:  # some patterns fail on some shapes
            print(pattern, x.shape, error, file=sys.stderr)
            return None
        left = ~missing.all(1)
        if missing[left].any() and (~missing).sum(0).min() > 1:
            return x[left], np.where(missing, np.nan, x)[left]
    return None


def summary(results):
    """Prints BQMF's error in % of that of each other method, geometric means over tables by pattern, and how
    often each has the least error of all."""
    errors, seconds = {}, {}
    for table, pattern, method, error, took in csv.reader(results.open()):
        errors.setdefault((table, pattern), {})[method] = float(error)
        seconds.setdefault(method, []).append(float(took))
    print(
        "| pattern | tables |",
        " | ".join(others := [m for m in METHODS if m in seconds and m != "BQMF"]),
        "|",
    )
    ratio = lambda cases, m: np.exp(
        np.nanmean([np.log(e["BQMF"] / e[m]) for e in cases if m in e] or [np.nan])
    )
    for name in (*PATTERNS, "all"):
        cases = [e for (_, pattern), e in errors.items() if "BQMF" in e and name in (pattern, "all")]
        print(f"| {name} | {len(cases)} |", " | ".join(f"{100 * ratio(cases, m):.0f}" for m in others), "|")
    for m in seconds:
        whole = [e for e in errors.values() if m in e and "BQMF" in e]
        least = sum(e[m] == np.nanmin(list(e.values())) for e in whole)
        worse = sum(e["BQMF"] < e[m] for e in whole)
        print(
            f"{m}: least error in {least} of {len(whole)}, BQMF's is less in {worse}, {np.mean(seconds[m]):.2f} s"
        )


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("tables")
    flags.add_argument("results", nargs="?", default="missbench.csv")
    flags.add_argument("-every", type=int, default=1)
    flags.add_argument("-methods", default=",".join(METHODS))
    to = flags.parse_args()
    results, methods = pathlib.Path(to.results), to.methods.split(",")
    done = set()
    if results.exists():
        done = {tuple(line[:3]) for line in csv.reader(results.open())}
    with results.open("a") as file:
        for table in sorted(pathlib.Path(to.tables).glob("*.csv"))[:: to.every]:
            x = pd.read_csv(table).to_numpy(float)
            for at, pattern in enumerate(PATTERNS):
                made_of = holes(x, pattern, 100 * at)
                if made_of is None:
                    continue
                whole, given = made_of
                hidden = np.isnan(given)
                for method in methods:
                    if (table.stem, pattern, method) in done:
                        continue
                    began = time.perf_counter()
                    try:
                        fit = METHODS[method](given)
                        off = ((fit - whole) / x.std(0))[hidden]
                        error = float(np.sqrt(np.mean(off**2)))
                    except Exception as failed:
                        print(table.stem, pattern, method, failed, file=sys.stderr)
                        error = float("nan")
                    took = time.perf_counter() - began
                    csv.writer(file).writerow([table.stem, pattern, method, f"{error:.5g}", f"{took:.3g}"])
                    file.flush()
    summary(results)


if __name__ == "__main__":
    main()
