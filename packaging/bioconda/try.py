"""Builds the recipe for bioconda and runs its test section, without a channel:

    python try.py RECIPE RELEASE OUT

meta.yaml is rendered by Jinja as conda-build does. rattler-build, which the registry of Python has, takes its own
form of a recipe: the parts of meta.yaml move over one by one, the source is that of RELEASE, and Go is this
machine's, since compilers come from a channel.
"""

import hashlib
import os
import pathlib
import shutil
import sys

import jinja2
import yaml
from rattler_build import RenderConfig, Stage0Recipe, ToolConfiguration, VariantConfig

recipe, release, out = map(pathlib.Path, sys.argv[1:])
meta = yaml.safe_load(
    jinja2.Environment(undefined=jinja2.StrictUndefined)
    .from_string((recipe / "meta.yaml").read_text())
    .render(compiler=lambda name: f"{name}_linux-64", pin_subpackage=lambda name, max_pin: f"{name} {max_pin}")
)
source = release / "quantmf-source.tar.gz"
assert meta["source"]["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest(), "the sum of the source"
assert meta["source"]["url"].endswith("/" + source.name)
assert meta["requirements"]["build"] == ["go-nocgo_linux-64"]
assert meta["build"]["run_exports"], "bioconda asks every recipe for run_exports"
assert len(meta["about"]["summary"]) <= 100

work = out / "recipe"
work.mkdir(parents=True)
shutil.copy(recipe / "build.sh", work)
about = {
    "homepage": meta["about"]["home"],
    "license": meta["about"]["license"],
    "license_file": meta["about"]["license_file"],
    "summary": meta["about"]["summary"],
}
converted = {
    "package": {**meta["package"], "version": str(meta["package"]["version"])},
    "source": {"path": str(source), "sha256": meta["source"]["sha256"]},
    "build": {
        "number": meta["build"]["number"],
        "script": {
            "file": "build.sh",
            "env": {
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                "GOMODCACHE": os.environ.get("GOMODCACHE", os.environ["HOME"] + "/go/pkg/mod"),
            },
        },
    },
    "tests": [{"script": meta["test"]["commands"]}],
    "about": about,
}
(work / "recipe.yaml").write_text(yaml.safe_dump(converted))
built = Stage0Recipe.from_file(work / "recipe.yaml").render(VariantConfig(), RenderConfig())
assert len(built) == 1
result = built[0].run_build(
    tool_config=ToolConfiguration(test_strategy="native"), output_dir=out / "packages", channels=[])
print("built and tested:", *[p.name for p in result.packages])
