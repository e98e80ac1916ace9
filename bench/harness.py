"""What all measurements of this folder share: builds of this package, rounds in which all contenders take turns,
ratios within a round, tables of Markdown, pages whose parts are filled in, and records in JSON."""

import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
root = here.parent
pages = root / "docs" / "measurements"
work = here / ".work"
QUICK = "quick" in sys.argv
BUILDS = {"AVX-512": [], "AVX2": [], "Go alone": ["-tags", "purego"]}

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


# --- this package ---------------------------------------------------------------


def overlay(file, change, folder):
    """Returns the flags of a build in which a file of the package has another text."""
    text = file.read_text()
    changed = change(text)
    assert changed != text, f"{file} has no line to change"
    copy, listed = folder / ("changed_" + file.name), folder / "overlay.json"
    copy.write_text(changed)
    listed.write_text(json.dumps({"Replace": {str(file): str(copy)}}))
    return ["-overlay", str(listed)]


def go(*args, cwd=here, env=None):
    return subprocess.run(["go", *args], cwd=cwd, check=True, capture_output=True, text=True,
                          env=dict(os.environ, GOFLAGS="-buildvcs=false", **(env or {}))).stdout


def build(names=BUILDS, test=None, wasm=False):
    """Builds the contender, or the tests of a folder of the package, in several ways."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=work if work.exists() else None))
    held = overlay(root / "internal/kernel/level_amd64.go", lambda t: t.replace(
        "\nvar level = detect()\n", "\nvar level = min(detect(), AVX2)\n"), folder)
    built = {}
    for name in names:
        built[name] = str(folder / name.replace(" ", "-"))
        flags = held if name == "AVX2" else BUILDS[name]
        if test:
            go("test", "-c", *flags, "-o", built[name], test, cwd=root)
        else:
            go("build", *flags, "-o", built[name], "./contender")
    if wasm:
        built["wasm"] = str(folder / "contender.wasm")
        go("build", "-o", built["wasm"], "./contender", env={"GOOS": "js", "GOARCH": "wasm"})
    return built


def ask(binary, **request):
    """Returns the answer of a contender, run with one thread."""
    command = [binary]
    if binary.endswith(".wasm"):
        goroot = go("env", "GOROOT").strip()
        command = ["node", "--stack-size=8192", goroot + "/lib/wasm/wasm_exec_node.js", binary]
    done = subprocess.run(command, input=json.dumps(request, default=lambda v: v.tolist()), text=True,
                          capture_output=True, cwd=root, env=dict(os.environ, GOMAXPROCS="1"))
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def fit(binary, **request):
    return ask(binary, fit=request)


def benchmark(binary, pattern, time, cwd=root):
    """Returns the metrics of benchmarks of a test binary: {name: {unit: value}}."""
    done = subprocess.run([binary, "-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=" + time,
                           "-test.cpu=1"], capture_output=True, text=True, cwd=cwd)
    out = {}
    for words in (line.split() for line in done.stdout.splitlines() if line.startswith("Benchmark")):
        if len(words) > 3:
            out[words[0].removeprefix("Benchmark")] = {u: float(v) for v, u in zip(words[2::2], words[3::2])}
    if done.returncode or not out:
        raise RuntimeError(binary + "\n" + done.stdout + done.stderr)
    return out


# --- rounds and statistics --------------------------------------------------------


class Rounds:
    """Times of contenders that take turns. A contender is a function that returns the seconds of a unit."""

    def __init__(self):
        self.contenders, self.times = {}, {}

    def add(self, key, call):
        self.contenders[key] = call

    def run(self, rounds):
        for turn in range(rounds):
            for key, call in self.contenders.items():
                taken = self.times.setdefault(key, {})
                if sum(taken.values()) < 30 or not turn % 3:  # the slowest take every third turn
                    taken[turn] = call()
            print("round %d of %d" % (turn + 1, rounds), file=sys.stderr, flush=True)
        return self

    def median(self, key):
        return statistics.median(self.times[key].values())

    def fastest(self, keys):
        return min((k for k in keys if k in self.times), key=self.median, default=None)

    def ratio(self, theirs, ours):
        """Returns the median over rounds of their time over ours."""
        a, b = self.times[theirs], self.times[ours]
        return statistics.median(a[t] / b[t] for t in a if t in b)


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


# --- tables and pages ---------------------------------------------------------------


def digits(v, n=3):
    """Returns a number with n significant digits, without an exponent."""
    if v == int(v):
        return str(int(v))
    return "%.*f" % (max(0, n - 1 - math.floor(math.log10(abs(v)))), v)


def spread(values, n=3):
    """Returns the median of values and their range."""
    values = sorted(values)
    return "%s (%s–%s)" % tuple(digits(v, n) for v in (statistics.median(values), values[0], values[-1]))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, r)) + " |" for r in rows]) + "\n"


def fill(page, parts, record=None, program="bench"):
    """Puts each part between its marks in a page, and keeps the record of what was measured; "quick" prints."""
    if QUICK:
        for name, part in parts.items():
            print(f"-- {name}\n{part}")
        return
    text = page.read_text()
    for name, part in parts.items():
        begin = f"<!-- {program}: {name} -->\n"
        before, rest = text.split(begin)
        text = before + begin + part + "<!-- end -->" + rest.split("<!-- end -->", 1)[1]
    page.write_text(text)
    if record is not None:
        (pages / (page.stem + ".json")).write_text(json.dumps(record, indent=1) + "\n")


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    get = lambda key: re.search(rf"^{key}\s*:\s*(.*)$", text, re.M).group(1)
    wide = ", AVX-512" if "avx512f" in text else ""
    return f"{get('model name')}, family {get('cpu family')}, model {get('model')}{wide}"


def versions(*packages):
    import importlib.metadata

    found = [f"{p} {importlib.metadata.version(p)}" for p in packages]
    return ", ".join([go("env", "GOVERSION").strip(), "Python " + platform.python_version(), *found])


def arguments():
    """Returns the words of the command line but for "quick"."""
    return [a for a in sys.argv[1:] if a != "quick"]


def plot(file, draw, **figure):
    """Draws a figure with draw(figure, axes), the same bytes from the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "quantmf"
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(**figure)
    draw(fig, axes)
    if not QUICK:
        meta = {"Software": None} if file.suffix == ".png" else {"Date": None}
        fig.savefig(file, dpi=110, metadata=meta)
