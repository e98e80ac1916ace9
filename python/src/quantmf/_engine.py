"""The engine: a process of the program ``quantmf serve``, and the frames in which calls go to it.

A frame is ``qmf1``, the length of a header (4 bytes), the length of a body (8 bytes), the header in JSON and the
body, which holds arrays. docs/serve.md of the project has the layout.
"""

from __future__ import annotations

import atexit
import io
import itertools
import json
import os
import queue
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from ._errors import EngineError, QuantmfMemoryError, made

_START = struct.Struct("<4sIQ")
_MAGIC = b"qmf1"
_PROTOCOL = 1
_TYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype("<f8"),
    "f4": np.dtype("<f4"),
    "i8": np.dtype("<i8"),
    "u4": np.dtype("<u4"),
    "u1": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}

Progress = Callable[[dict], None]


def program() -> str:
    """Return the path of the program: ``$QUANTMF``, that of the wheel, or the one on the path."""
    given = os.environ.get("QUANTMF")
    if given:
        return given
    name = "quantmf.exe" if os.name == "nt" else "quantmf"
    carried = Path(__file__).parent / "bin" / name
    if carried.exists():
        return str(carried)
    found = shutil.which("quantmf")
    if found is None:
        raise EngineError("quantmf: this installation carries no program, and none is on the path")
    return found


def _plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value as JSON has it, with its arrays put aside."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = np.frombuffer(value, np.uint8)
    if isinstance(value, np.ndarray):
        little = value.dtype.newbyteorder("<")
        if little not in _NAMES:
            raise TypeError(f"an array of {value.dtype} cannot be sent")
        arrays.append(np.ascontiguousarray(value, little))
        return {"$array": len(arrays) - 1}
    if isinstance(value, dict):
        return {name: _plain(of, arrays) for name, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(of, arrays) for of in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _filled(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value of a reply with the arrays in their places."""
    if isinstance(value, dict):
        if value.keys() == {"$array"}:
            of = arrays[value["$array"]]
            return of if of.ndim else float(of)  # of no dimension: a number that is not finite
        return {name: _filled(of, arrays) for name, of in value.items()}
    if isinstance(value, list):
        return [_filled(of, arrays) for of in value]
    return value


class Engine:
    """A process of the program. Several threads may call it at once; their calls run side by side.

    It ends with this process, and with ``close``.
    """

    def __init__(self) -> None:
        how: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        if os.name == "nt":
            how["creationflags"] = 0x200  # CREATE_NEW_PROCESS_GROUP
        else:
            how["start_new_session"] = True  # an interrupt is for this process, which cancels the call
        self.process = subprocess.Popen([program(), "serve", "-max-memory", str(allowed())], **how)
        self._to = cast(io.BufferedWriter, self.process.stdin)
        self._from = cast(io.BufferedReader, self.process.stdout)
        self._write = threading.Lock()
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue] = {}
        self._dead: str | None = None
        greeting, _ = self._read()
        if greeting.get("protocol") != _PROTOCOL:
            self.close()
            raise EngineError(
                f"quantmf: {program()} speaks protocol {greeting.get('protocol')}, and this is for {_PROTOCOL}"
            )
        self.version: str = greeting["quantmf"]
        self.memory: int = greeting["memory"]
        threading.Thread(target=self._listen, name="quantmf", daemon=True).start()

    def _exactly(self, count: int) -> bytes:
        data = self._from.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _read(self) -> tuple[dict, list[np.ndarray]]:
        try:
            magic, head, _ = _START.unpack(self._exactly(_START.size))
            if magic != _MAGIC:
                raise EOFError
            header = json.loads(self._exactly(head))
            arrays = []
            for of in header.get("arrays", ()):
                dtype, shape = _TYPES[of["type"]], tuple(of["shape"])
                array = np.empty(shape, dtype)
                if array.nbytes:
                    view = array.reshape(-1).view(np.uint8).data
                    at = 0
                    while at < len(view):
                        count = self._from.readinto(view[at:])
                        if not count:
                            raise EOFError
                        at += count
                self._exactly(-array.nbytes % 8)
                arrays.append(array)
        except (EOFError, ValueError, OSError) as cause:
            code = self.process.poll()
            raise EngineError(
                f"quantmf: the engine has ended{'' if code is None else f' with code {code}'}"
            ) from cause
        return header, arrays

    def _listen(self) -> None:
        try:
            while True:
                header, arrays = self._read()
                with self._lock:
                    caller = self._waiting.get(header.get("id", 0))
                if caller is not None:
                    caller.put((header, arrays))
        except EngineError as error:
            with self._lock:
                self._dead = str(error)
                waiting = list(self._waiting.values())
            for of in waiting:
                of.put((None, None))

    def _send(self, header: dict, arrays: list[np.ndarray]) -> None:
        if arrays:
            header["arrays"] = [{"type": _NAMES[of.dtype], "shape": list(of.shape)} for of in arrays]
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
        sizes = [of.nbytes + -of.nbytes % 8 for of in arrays]
        with self._write:
            try:
                to = self._to
                to.write(_START.pack(_MAGIC, len(text), sum(sizes)) + text)
                for of, size in zip(arrays, sizes):
                    if of.nbytes:
                        to.write(of.reshape(-1).view(np.uint8).data)
                    to.write(b"\0" * (size - of.nbytes))
                to.flush()
            except (OSError, ValueError) as cause:
                raise EngineError("quantmf: the engine has ended") from cause

    def call(self, name: str, args: dict, progress: Progress | None = None) -> Any:
        """Make a call and wait for its result.

        An interrupt, or an exception of ``progress``, cancels the call.
        """
        arrays: list[np.ndarray] = []
        plain = _plain(args, arrays)
        size = sum(of.nbytes for of in arrays)
        if size > self.memory:
            raise QuantmfMemoryError(
                f"quantmf: the call has {size} bytes, and {self.memory} are allowed: set QUANTMF_MEMORY"
            )
        replies: queue.SimpleQueue = queue.SimpleQueue()
        with self._lock:
            number = next(self._ids)
            self._waiting[number] = replies
        try:
            self._send({"id": number, "call": name, "args": plain}, arrays)
            del arrays, plain
            while True:
                with self._lock:
                    dead = self._dead
                if dead and replies.empty():
                    raise EngineError(dead)
                header, arrays = replies.get()
                if header is None:
                    raise EngineError(self._dead)
                if "progress" in header:
                    if progress is not None:
                        progress(header["progress"])
                    continue
                if "error" in header:
                    raise made(header["error"])
                return _filled(header["result"], arrays)
        except BaseException:
            try:
                self._send({"cancel": number}, [])
            except EngineError:
                pass
            raise
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def close(self) -> None:
        """End the process."""
        try:
            self._to.close()
        except OSError:
            pass
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def allowed() -> int:
    """Return the bytes that the engine may take: ``$QUANTMF_MEMORY``, or three quarters of the machine's."""
    given = os.environ.get("QUANTMF_MEMORY")
    if given:
        return int(given)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, OSError, ValueError):
        return 8 << 30


_lock = threading.Lock()
_engine: Engine | None = None


def engine() -> Engine:
    """Return the engine of this process. It is started when it is first used, and anew where it has died."""
    global _engine
    with _lock:
        if _engine is None or _engine._dead or _engine.process.poll() is not None:
            _engine = Engine()
        return _engine


def call(name: str, progress: Progress | None = None, **args: Any) -> Any:
    """Make a call of the engine of this process."""
    return engine().call(name, {of: value for of, value in args.items() if value is not None}, progress)


def _close() -> None:
    global _engine
    ended, _engine = _engine, None
    if ended is not None:
        ended.close()


def _forked() -> None:
    """Leave the engine to the parent after a fork: the child starts one of its own."""
    global _engine, _lock
    _lock = threading.Lock()
    left, _engine = _engine, None
    if left is not None:
        # The descriptors stay open, on nothing: whatever flushes or closes them later reaches neither the
        # parent's engine nor a file that has taken their numbers.
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in (left._to, left._from):
            os.dup2(nothing, pipe.fileno())
        os.close(nothing)
        left.process.returncode = 0  # it is no child of this process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_close)

__all__ = ["call", "engine", "program"]
