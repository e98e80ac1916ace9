"""cNMF's run, 20 seeds for each of 5 k on 3,000 cells × 5,000 genes, by cnmf and by quantmf.tl, from an h5ad on.

python cells.py FOLDER [SEEDS [TABLE K...]]: both in the environment, one thread each. Prints seconds of processor
time, and how programs match. With SEEDS below 20 both make fewer fits. TABLE has features × samples, tab-separated,
in the place of these cells; features that lack values are left out.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import sys
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linear_sum_assignment

import quantmf

KS = [6, 7, 8, 9, 10]
warnings.simplefilter("ignore")


def seconds() -> float:
    """Return the processor time of this process, and of those that it started and that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(of.ru_utime + of.ru_stime for of in map(resource.getrusage, whose))


def cells(n: int = 3000, genes: int = 5000, programs: int = 8) -> anndata.AnnData:
    of = np.random.default_rng(1)
    use = of.dirichlet(np.full(programs, 0.2), n)
    spectra = of.gamma(0.15, size=(programs, genes)) * of.lognormal(0, 1, genes)
    spectra /= spectra.sum(1, keepdims=True)
    counts = of.poisson(use @ spectra * 4000 * of.lognormal(0, 0.4, (n, 1)))
    counts[:, counts.sum(0) == 0] = np.eye(n, 1, dtype=int)  # no gene without counts
    adata = anndata.AnnData(sparse.csr_matrix(counts.astype(np.float64)))
    adata.obs_names, adata.var_names = [f"c{i}" for i in range(n)], [f"g{i}" for i in range(genes)]
    return adata


def table(path: str) -> anndata.AnnData:
    values = pd.read_csv(path, sep="\t", index_col=0).dropna().astype(float)
    return anndata.AnnData(values.T[values.index[values.sum(axis=1) > 0]])


def main() -> None:
    from cnmf import cNMF

    folder, seeds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    folder.mkdir(exist_ok=True)
    of, ks = (table(sys.argv[3]), list(map(int, sys.argv[4:]))) if len(sys.argv) > 4 else (cells(), KS)
    of.write_h5ad(folder / "counts.h5ad")
    begin = seconds()
    theirs = cNMF(output_dir=str(folder), name="theirs")
    theirs.prepare(str(folder / "counts.h5ad"), components=ks, n_iter=seeds, seed=1, num_highvar_genes=2000)
    prepared = seconds()
    theirs.factorize(worker_i=0, total_workers=1)
    factorized = seconds()
    theirs.combine()
    for k in ks:
        theirs.consensus(k, density_threshold=0.5, show_clustering=False, build_ref=False)
    of_cnmf = seconds() - begin
    parts = prepared - begin, factorized - prepared, of_cnmf - (factorized - begin)
    print(f"cnmf {of_cnmf:.1f} s: prepare {parts[0]:.1f}, factorize {parts[1]:.1f}, consensus {parts[2]:.1f}")

    used = Path(folder / "theirs" / "theirs.overdispersed_genes.txt").read_text().split()
    begin = seconds()
    adata = anndata.read_h5ad(folder / "counts.h5ad")
    adata.var["highly_variable"] = adata.var_names.isin(used)
    matched = []
    for k in ks:
        quantmf.tl.consensus_nmf(adata, k, n_seeds=seeds, workers=1)
        matched.append((k, adata.varm["consensus_nmf"].T, adata.uns["consensus_nmf"]["stability"]))
    quantmf._engine._close()
    ours = seconds() - begin
    print(f"quantmf {ours:.1f} s, {of_cnmf / ours:.1f} times sooner")
    for k, programs, stability in matched:
        path = folder / "theirs" / f"theirs.spectra.k_{k}.dt_0_5.consensus.txt"
        spectra = pd.read_csv(path, sep="\t", index_col=0)
        mine = programs[:, adata.var_names.get_indexer(spectra.columns)]
        r = np.corrcoef(np.vstack([mine, spectra.to_numpy()]))[:k, k:]
        at = linear_sum_assignment(-r)
        print(k, *(f"{s:.2f}:{v:.3f}" for s, v in zip(stability, r[at])), "stability:r")


main()
