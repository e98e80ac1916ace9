"""The engine as a process: threads, forks, deaths, interrupts, limits."""

import json
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import quantmf
from quantmf._engine import Engine, call, engine, program

X = np.random.default_rng(0).gamma(1, 1, (40, 30))


def fit(k=2):
    return quantmf.NMF(k).fit(X).model_


def test_threads_share_it():
    want = {k: fit(k) for k in range(1, 5)}
    got = {}
    threads = [threading.Thread(target=lambda k=k: got.__setitem__(k, fit(k))) for k in want]
    for of in threads:
        of.start()
    for of in threads:
        of.join()
    assert got == want


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_child_processes_have_their_own(how):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip("not here")
    want, mine = fit(), engine().process.pid
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert pool.map(fit, [2, 2, 2]) == [want] * 3
    assert engine().process.pid == mine and fit() == want


def test_another_is_started_where_it_was_killed():
    before = engine()
    before.process.kill()
    before.process.wait()
    assert fit() and engine() is not before


def test_calls_of_one_that_is_killed_fail():
    failed = []

    def run():
        try:
            quantmf.QMF(5, epochs=100000).fit(X)
        except quantmf.EngineError as error:
            failed.append(error)

    of = threading.Thread(target=run)
    of.start()
    time.sleep(0.3)
    engine().process.kill()
    of.join(20)
    assert len(failed) == 1 and "ended" in str(failed[0])


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_cancels_the_call():
    started = time.monotonic()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            quantmf.QMF(5, epochs=10**7).fit(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert time.monotonic() - started < 10 and fit()


def test_it_ends_with_its_parent():
    code = (
        "import os, quantmf._engine as e; print(e.engine().process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pid = int(child.stdout)
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if os.path.exists(f"/proc/{pid}/stat") and open(f"/proc/{pid}/stat").read().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("it still runs")


def test_memory(monkeypatch):
    monkeypatch.setenv("QUANTMF_MEMORY", str(100 << 20))
    small = Engine()
    try:
        with pytest.raises(quantmf.QuantmfMemoryError, match="allowed"):
            small.call("score", {"model": b"", "x": np.broadcast_to(0.0, (1 << 24,)).reshape(1 << 12, -1)})
        x = np.ones((3000, 3000))
        with pytest.raises(quantmf.QuantmfMemoryError) as of:
            small.call("fit", {"method": "qmfq", "rank": 10, "x": x, "options": {}})
        assert of.value.limit == 100 << 20 and of.value.need > 28 << 20
        assert list(small.call("softRank", {"x": np.array([2.0, 1.0]), "options": {"epsilon": 0}})) == [2, 1]
    finally:
        small.close()


def test_no_program(monkeypatch):
    monkeypatch.setenv("QUANTMF", "/nowhere/quantmf")
    with pytest.raises(FileNotFoundError):
        Engine()


def test_unknown_calls_and_arguments():
    with pytest.raises(quantmf.QuantmfError, match="no such call"):
        call("nothing")
    with pytest.raises(quantmf.ShapeError, match="x.*matrix"):
        call("fit", method="nmf", rank=1, x="text", options={})
    with pytest.raises(quantmf.FormatError):
        call("open", model=b"no model")
    with pytest.raises(TypeError):
        call("fit", x=np.array(["a"]))


def test_frames_by_hand():
    """Another language's view: docs/serve.md."""
    frame = lambda header, body=b"": struct.pack("<4sIQ", b"qmf1", len(header), len(body)) + header + body  # noqa: E731
    x = np.array([3.0, 1.0, 2.0])
    ask = {
        "id": 7,
        "call": "softSort",
        "args": {"x": {"$array": 0}, "options": {"epsilon": 0}},
        "arrays": [{"type": "f8", "shape": [3]}],
    }
    given = (
        frame(json.dumps(ask).encode(), x.tobytes())
        + frame(b"{")
        + frame(json.dumps({"id": 8, "call": "softRank", "args": {"x": [5, 4]}}).encode())
    )
    out = subprocess.run([program(), "serve"], input=given, capture_output=True, check=True).stdout
    headers, arrays = [], []
    while out:
        magic, head, body = struct.unpack("<4sIQ", out[:16])
        assert magic == b"qmf1"
        headers.append(json.loads(out[16 : 16 + head]))
        arrays.append(out[16 + head : 16 + head + body])
        out = out[16 + head + body :]
    assert headers[0]["protocol"] == 1
    by_id = {of.get("id"): (of, body) for of, body in zip(headers[1:], arrays[1:])}
    assert by_id[7][0]["result"] == {"$array": 0} and list(np.frombuffer(by_id[7][1])) == [1, 2, 3]
    assert by_id[None][0]["error"]["kind"] == "Error" and "JSON" in by_id[None][0]["error"]["message"]
    assert list(np.round(np.frombuffer(by_id[8][1]), 1)) == [2, 1]


def test_joblib():
    joblib = pytest.importorskip("joblib")
    for backend in ("loky", "threading", "multiprocessing"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert joblib.Parallel()(joblib.delayed(fit)(k) for k in (2, 3, 2)) == [fit(2), fit(3), fit(2)]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk here")
def test_a_full_disk():
    with pytest.raises(OSError, match="space"):
        quantmf.NMF(2).fit(X).save("/dev/full")
    assert fit()
