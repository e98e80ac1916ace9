"""Checks the figures of R in known.json by scipy, which makes the same tests, to a relative 1e-9."""
import json, pathlib
import numpy as np
from scipy import stats

data = json.loads((pathlib.Path(__file__).parent / "known.json").read_text())

def near(what, got, want):
    assert abs(got - want) <= 1e-9 * abs(want) + 1e-300, (what, got, want)

for c in data["cases"]:
    x, y, of = np.array(c["x"]), np.array(c["y"]), np.array(c["of"])
    k = stats.kruskal(*(x[of == g] for g in range(c["groups"])))
    near("epsilon squared", k.statistic / (len(x) - 1), c["kruskal"][0])
    near("kruskal", k.pvalue, c["kruskal"][1])
    s = stats.spearmanr(x, y)
    near("rho", s.statistic, c["spearman"][0])
    near("spearman", s.pvalue, c["spearman"][1])
    w = stats.mannwhitneyu(x[of == 0], x[of != 0], method="asymptotic")
    near("above", w.statistic / (sum(of == 0) * sum(of != 0)), c["wilcoxon"][0])
    near("wilcoxon", w.pvalue, c["wilcoxon"][1])
for q, want in zip(stats.false_discovery_control(data["p"]), data["q"]):
    near("Benjamini and Hochberg", q, want)
print(len(data["cases"]), "cases agree")
