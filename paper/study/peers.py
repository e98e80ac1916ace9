"""Other people's imputation of a table with holes, for `go run . peers`, which draws the holes and
scores what is said of them: no value of a hidden cell comes here.

    python peers.py tables FOLDER                  the four tables that scikit-learn brings along
    python peers.py METHOD HOLES.tsv [SETTING...]  fills the empty cells; without settings, the whole grid

HOLES.tsv has features in rows and nothing else, tab-separated, hidden cells empty. A line of JSON for
each setting goes to standard output: the setting, the processor's seconds of that fit alone, its values of
the hidden cells, row after row, and where the method has them the ends of central 80 % intervals.

Every filled value is brought into the range of the visible ones of its row, which no method loses by.
"log" is log(1+x); where it or "z" (each row to mean 0 and deviation 1) was the scale of a fit, what
it says is brought back by the inverse.
"""

import gzip
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

warnings.filterwarnings("ignore")


class Table:
    def __init__(self, file):
        lines = pathlib.Path(file).read_text().rstrip("\n").split("\n")
        self.x = np.array([[float(v) if v else np.nan for v in line.split("\t")] for line in lines])
        self.hidden = np.isnan(self.x)
        self.low, self.high = np.nanmin(self.x, 1, keepdims=True), np.nanmax(self.x, 1, keepdims=True)
        self.wide = len(self.x) > 100

    def scales(self):
        return ["z", "log z"] if self.low.min() >= 0 else ["z"]

    def scaled(self, scale):
        """The table on a scale, and the way back."""
        forth, back = (np.log1p, np.expm1) if "log" in scale else (lambda v: v, lambda v: v)
        y, mean, deviation = forth(self.x), 0, 1
        if "z" in scale:
            mean, deviation = np.nanmean(y, 1, keepdims=True), np.nanstd(y, 1, keepdims=True)
            deviation[deviation == 0] = 1
        return (y - mean) / deviation, lambda f: back(f * deviation + mean)


def soft_impute(t, settings):
    """Mazumder, Hastie and Tibshirani (2010): shrink the singular values of the filled table, fill it
    again; the penalty falls along a path, each from where the one before ended, to a hundredth of the
    largest singular value. The singular vectors are those of the Gram matrix of the short side."""
    shares = ["%.3g" % v for v in np.geomspace(0.6, 0.01, 11)]
    for scale in t.scales():
        began = time.process_time()
        y, back = t.scaled(scale)
        if y.shape[0] < y.shape[1]:
            y = y.T
        seen = ~np.isnan(y)
        filled = np.where(seen, y, 0)
        top = math.sqrt(np.linalg.eigvalsh(filled.T @ filled)[-1])
        fit = np.zeros_like(y)
        for share in shares:
            penalty = top * float(share)
            for _ in range(100):
                filled = np.where(seen, y, fit)
                e, v = np.linalg.eigh(filled.T @ filled)
                s = np.sqrt(np.maximum(e, 0))
                keep = s > penalty
                new = (filled @ (v[:, keep] * (1 - penalty / s[keep]))) @ v[:, keep].T
                done = ((new - fit) ** 2).sum() < 1e-5 * max((fit**2).sum(), 1e-9)
                fit = new
                if done:
                    break
            seconds = time.process_time() - began
            name = scale + ", " + share
            if not settings or name in settings:
                yield name, seconds, back(fit if fit.shape == t.x.shape else fit.T), None


def each(t, settings, grid):
    """Fits of sklearn's kind: grid has (scale, rest of the name, what fits)."""
    for scale, name, fitted in grid:
        name = scale + ", " + name
        if settings and name not in settings:
            continue
        began = time.process_time()
        y, back = t.scaled(scale)
        f = back(fitted(y))
        yield name, time.process_time() - began, f, None


def knn(t, settings):
    """KNNImputer, neighbours among the samples or among the features."""
    from sklearn.impute import KNNImputer

    def fill(k, samples):
        def f(y):
            m = KNNImputer(n_neighbors=k, weights="distance")
            return m.fit_transform(y.T).T if samples else m.fit_transform(y)

        return f

    grid = [
        (scale, "%d %s" % (k, "samples" if samples else "features"), fill(k, samples))
        for scale in t.scales()
        for samples in (True, False)
        for k in (3, 6, 12, 25, 50)
        if k < min(t.x.shape)
    ]
    return each(t, settings, grid)


def iterative(t, settings):
    """IterativeImputer with its own BayesianRidge, of the features most correlated; ten rounds, five where
    there are more than a hundred features."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    def fill(nearest):
        def f(y):
            low, high = np.nanmin(y, 1), np.nanmax(y, 1)
            m = IterativeImputer(n_nearest_features=nearest, max_iter=5 if t.wide else 10, min_value=low, max_value=high, random_state=1, keep_empty_features=True)
            return m.fit_transform(y.T).T

        return f

    grid = [(scale, "all features", fill(None)) for scale in t.scales() if not t.wide]
    grid += [(scale, "%d features" % k, fill(k)) for scale in t.scales() for k in ((20, 60, 150) if t.wide else (5, 15)) if k < len(t.x)]
    return each(t, settings, grid)


def forests(t, settings):
    """missForest (Stekhoven and Buehlmann 2012): feature after feature, the fewest missing first, by a random
    forest of the others, as IterativeImputer makes it."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    trees, rounds, nearest = (20, 3, 60) if t.wide else (50, 4, None)

    def fill(share):
        def f(y):
            forest = RandomForestRegressor(n_estimators=trees, max_features=share, min_samples_leaf=2, random_state=1)
            m = IterativeImputer(forest, n_nearest_features=nearest, max_iter=rounds, imputation_order="ascending", random_state=1, keep_empty_features=True)
            return m.fit_transform(y.T).T

        return f

    return each(t, settings, [("raw", "%d trees, %s" % (trees, share), fill(share)) for share in (("sqrt",) if t.wide else ("sqrt", 1.0))])


def copula(t, settings):
    """gcimpute (Zhao and Udell 2020): a Gaussian copula, or one of low rank."""
    from gcimpute.gaussian_copula import GaussianCopula
    from gcimpute.low_rank_gaussian_copula import LowRankGaussianCopula

    ranks = [r for r in ((3, 6, 12, 24) if t.wide else (2, 4, 8)) if r < min(t.x.shape) - 1]
    makes = [("rank %d" % r, lambda r=r: LowRankGaussianCopula(rank=r, max_iter=15 if t.wide else 50)) for r in ranks]
    if not t.wide:
        makes.append(("full", lambda: GaussianCopula()))
    tied = any(np.unique(row[~np.isnan(row)], return_counts=True)[1].max() >= 0.1 * (~np.isnan(row)).sum() for row in t.x)
    grid = [(name, make, {}) for name, make in makes]
    if tied:  # rows that would count as ordinal or truncated
        grid += [(name + ", all continuous", make, {"continuous": list(range(len(t.x)))}) for name, make in makes]
    for name, make, types in grid:
        if settings and name not in settings:
            continue
        began = time.process_time()
        try:
            m = make()
            f = np.asarray(m.fit_transform(t.x.T, **types)).T
        except Exception as e:  # of some types of rows with ties it makes empty intervals, and ends
            print("gcimpute,", name, "fails:", repr(e)[:200], file=sys.stderr)
            continue
        seconds = time.process_time() - began
        try:
            ends = m.get_confidence_interval(alpha=0.8)
            ends = np.asarray(ends["lower"]).T, np.asarray(ends["upper"]).T
        except Exception as e:  # its intervals fail on some tables; the fit stands
            print("gcimpute,", name, "has no intervals:", repr(e)[:200], file=sys.stderr)
            ends = None
        if not np.isfinite(f[t.hidden]).all():
            continue
        if ends and not all(np.isfinite(e[t.hidden]).all() for e in ends):
            ends = None
        yield name, seconds, f, ends


def filled(t, settings):
    """scikit-learn's NMF of the rank that is the one setting, under KL: ten updates of the filled table, 25
    times, each from the factors of the one before. At first a cell has the mean of its row, at the end a
    hundredth of it at least."""
    from sklearn.decomposition import non_negative_factorization

    began = time.process_time()
    means = np.nanmean(t.x, 1, keepdims=True)
    fit = np.broadcast_to(means, t.x.shape)
    start = {"init": "random", "random_state": 1}
    for _ in range(25):
        w, h, _ = non_negative_factorization(np.where(t.hidden, fit, t.x), n_components=int(settings[0]),
                                             solver="mu", beta_loss="kullback-leibler", max_iter=10, tol=0, **start)
        start = {"init": "custom", "W": w, "H": h}
        fit = w @ h
    yield settings[0], time.process_time() - began, np.maximum(fit, means / 100), None


def bpca(t, settings):
    """BPCA (Oba et al. 2003) as pcaMethods of Bioconductor fits it: samples are the observations, as its help
    has it; of wide tables also features, unscaled, as its authors have it. Of small tables also the rank that
    these give it, one below the number of features."""
    code = """a <- commandArgs(TRUE); y <- as.matrix(read.table(a[1], sep = "\\t", na.strings = "nan"))
    suppressMessages(library(pcaMethods)); began <- proc.time()
    f <- pca(y, method = "bpca", nPcs = as.integer(a[2]), verbose = FALSE)
    cat(sum((proc.time() - began)[1:2]), "\\n")
    write.table(completeObs(f), a[1], sep = "\\t", row.names = FALSE, col.names = FALSE)"""
    d = len(t.x)
    ranks = [(str(k), k) for k in ((3, 6, 12) if t.wide else (1, 2, 4, 8))] + [("d - 1", d - 1)] * (not t.wide)
    grid = [(scale, "samples") for scale in t.scales()]
    if t.wide:
        grid += [(scale.replace("z", "raw"), "features") for scale in t.scales()]
    for scale, of in grid:
        y, back = t.scaled(scale)
        for rank, k in ranks:
            name = "%s, rank %s, %s" % (scale, rank, of)
            if settings and name not in settings:
                continue
            with tempfile.NamedTemporaryFile("w") as f:
                np.savetxt(f, y.T if of == "samples" else y, delimiter="\t")
                f.flush()
                r = subprocess.run(["Rscript", "-e", code, f.name, str(k)], stdout=subprocess.PIPE, check=True)
                fit = np.loadtxt(f.name, delimiter="\t")
            yield name, float(r.stdout.split()[-1]), back(fit.T if of == "samples" else fit), None


def mice(t, settings):
    """miceforest: chained LightGBM, the mean of five data sets; with its mean matching and without."""
    import miceforest
    import pandas

    frame = pandas.DataFrame(t.x.T, columns=["f%d" % i for i in range(len(t.x))])
    for match in (0, 5):
        name = "matching %d" % match
        if settings and name not in settings:
            continue
        began = time.process_time()
        kernel = miceforest.ImputationKernel(frame, num_datasets=5, mean_match_candidates=match, random_state=1)
        kernel.mice(5, num_threads=1, verbose=False)
        f = np.mean([kernel.complete_data(i).to_numpy() for i in range(5)], 0).T
        yield name, time.process_time() - began, f, None


def hyper(t, settings):
    """HyperImpute (Jarrett et al. 2022): for each feature a model of its own choice among linear, forests and
    two kinds of boosted trees; by its defaults, and with its search of their settings."""
    import pandas
    from hyperimpute.plugins.imputers import Imputers

    for search in ("simple", "hyperband"):
        if settings and search not in settings:
            continue
        began = time.process_time()
        f = Imputers().get("hyperimpute", optimizer=search).fit_transform(pandas.DataFrame(t.x.T.copy()))
        yield search, time.process_time() - began, np.asarray(f, dtype=float).T, None


METHODS = {"filled": filled, "BPCA": bpca, "miceforest": mice, "HyperImpute": hyper, "softImpute": soft_impute, "KNNImputer": knn, "IterativeImputer": iterative, "gcimpute": copula, "missForest": forests}


def tables(folder):
    from sklearn import datasets

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, d in (
        ("wine", datasets.load_wine()),
        ("breast", datasets.load_breast_cancer()),
        ("diabetes", datasets.load_diabetes(scaled=False)),
        ("digits", datasets.load_digits()),
    ):
        x = d.data.T
        with gzip.open(folder / (name + ".tsv.gz"), "wt") as f:
            f.write("feature\t" + "\t".join("s%d" % (j + 1) for j in range(x.shape[1])) + "\n")
            for feature, row in zip(d.feature_names, x):
                f.write(feature + "\t" + "\t".join(repr(float(v)) for v in row) + "\n")


def main():
    if sys.argv[1] == "tables":
        return tables(sys.argv[2])
    if sys.argv[1] == "versions":
        found = {}
        for p in ("numpy", "scikit-learn", "gcimpute", "miceforest", "hyperimpute", "pandas"):
            try:
                found[p] = importlib.metadata.version(p)
            except importlib.metadata.PackageNotFoundError:  # it was left out with -methods
                pass
        r = ["Rscript", "-e", "cat(as.character(packageVersion('pcaMethods')))"]
        if version := subprocess.run(r, capture_output=True, text=True).stdout:
            found["pcaMethods"] = version
        print(json.dumps(found))
        return
    t = Table(sys.argv[2])
    out, sys.stdout = sys.stdout, sys.stderr  # for what the libraries print
    for name, seconds, f, ends in METHODS[sys.argv[1]](t, sys.argv[3:]):
        line = {"setting": name, "seconds": seconds}
        f = np.clip(f, t.low, t.high)
        line["cells"] = [float("%.9g" % v) for v in f[t.hidden]]
        if ends:
            line["low"], line["high"] = ([float("%.9g" % v) for v in e[t.hidden]] for e in ends)
        print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()
