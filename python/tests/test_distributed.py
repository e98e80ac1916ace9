"""Fits over a cluster of processes: the bits of one machine, whatever dies."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import quantmf

dask = pytest.importorskip("dask.distributed")


@pytest.fixture(scope="module")
def client():
    with dask.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with dask.Client(cluster) as client:
            yield client


def table(d=70):
    of = np.random.default_rng(2)
    return of.gamma(1, 1, (40, 3)) @ of.gamma(1, 1, (3, d)) + 0.1


def same(a, b):
    return np.array_equal(a.components_, b.components_) and np.array_equal(a.embedding_, b.embedding_)


def test_nmf_has_the_bits_of_one_machine(client, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    x = table()
    x[x < 1] = 0
    model = quantmf.NMF(3, beta_loss="kl", max_iter=6, random_state=4)
    spread = quantmf.distributed.fit(client, model, x, tmp_path / "a", n_shards=4)
    assert same(spread, quantmf.NMF(3, beta_loss="kl", max_iter=6, random_state=4).fit(x))
    assert spread.get_params() == model.get_params() and spread.transform(x[:2]).shape == (2, 3)
    assert same(
        quantmf.distributed.fit(client, model, sparse.csr_matrix(x), tmp_path / "b", n_shards=2), spread
    )


def test_a_worker_that_dies_does_no_harm(client, tmp_path):
    x, model = table(130), quantmf.QMF(3, epochs=40, random_state=1)
    want = quantmf.distributed.fit(client, model, x, tmp_path / "whole", n_shards=2)
    killed = []

    def kill():
        while not (tmp_path / "hurt" / "shards" / "round-000003").exists():
            time.sleep(0.005)
        pid = client.run(os.getpid).popitem()[1]
        os.kill(pid, signal.SIGKILL)
        killed.append((pid, (tmp_path / "hurt" / "model").exists()))

    killer = threading.Thread(target=kill)
    killer.start()
    hurt = quantmf.distributed.fit(client, model, x, tmp_path / "hurt", n_shards=4)
    killer.join()
    assert same(hurt, want) and killed[0][1] is False


def test_errors(client, tmp_path):
    for model in (quantmf.BQMF(), quantmf.QMFQ(3), quantmf.ConsensusNMF(3), quantmf.NMF(3, restarts=2)):
        with pytest.raises(quantmf.OptionError):
            quantmf.distributed.fit(client, model, table(), tmp_path / "c", n_shards=2)
    with pytest.raises(quantmf.QuantmfError, match="shards"):
        quantmf.distributed.fit(client, quantmf.NMF(3), table(), tmp_path / "d", n_shards=40)
