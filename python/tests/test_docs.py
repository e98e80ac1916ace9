"""What pages say runs as it stands; blocks of another package, where that is installed."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PEERS = ("sklearn", "cnmf", "torch", "torchsort", "anndata", "scanpy")


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


@pytest.mark.parametrize("block", blocks("docs/coming-from.md"))
def test_coming_from(block, tmp_path, monkeypatch, counts):
    for peer in PEERS:
        if re.search(rf"\b{peer}\b", block):
            pytest.importorskip(peer)
    monkeypatch.chdir(tmp_path)
    if "h5ad" in block:
        from test_tl import cells

        adata = cells()
        adata.X = adata.X.astype(float)
        adata.write_h5ad("counts.h5ad")
    of = {"X": counts}
    exec(block, of)
    if "W" in of:
        assert of["W"].shape == (60, 3)
    if "ranks" in of:
        ranks = of["ranks"].detach().numpy()
        assert ranks.min() > 0 and ranks.max() <= 64.5 and of["x"].grad.shape == (4, 64)
    if "usage" in of:
        assert of["usage"].shape == (300, 4)


@pytest.mark.filterwarnings("ignore")
def test_readme():
    for peer in ("sklearn", "scanpy"):
        pytest.importorskip(peer)
    import scanpy
    from test_tl import cells

    adata = cells(200)
    scanpy.pp.log1p(adata)
    of = {"adata": adata, "sc": scanpy, "x": np.array([[3.0, 1, 2]]), "q": np.arange(3.0)}
    ran = 0
    for block in blocks("python/README.md"):
        if "cluster" in block:  # which test_distributed.py has
            continue
        exec(block.replace('"wine.qmf"', "__import__('os').devnull"), of)
        ran += 1
    assert ran >= 4 and of["W"].shape == (178, 3) and "X_bqmf" in adata.obsm
    assert importlib.util.find_spec("quantmf.tl")
