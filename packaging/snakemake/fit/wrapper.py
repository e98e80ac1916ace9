__author__ = "the quantmf authors"
__copyright__ = "Copyright the quantmf authors"
__license__ = "BSD-3-Clause"

from snakemake.shell import shell

flags = {"model": "-o", "u": "-u", "v": "-v", "report": "-report"}
unknown = set(snakemake.output.keys()) - set(flags)
if unknown or not snakemake.output.keys():
    raise ValueError("outputs are named: model, u, v, report")

extra = snakemake.params.get("extra", "")
groups = f"-groups {snakemake.input.groups}" if snakemake.input.get("groups") else ""
outputs = " ".join(f"{flags[name]} {path}" for name, path in snakemake.output.items())
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

shell(
    "quantmf fit {extra} {groups} {outputs} -workers {snakemake.threads} -progress none"
    " {snakemake.input.matrix} {log}"
)
