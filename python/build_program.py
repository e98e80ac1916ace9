"""Puts the program into a wheel: the one that $QUANTMF_PROGRAM names, or one that Go builds from the repository.

$QUANTMF_PLATFORM is the wheel's platform (default: this machine's).
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        if version == "editable":
            return
        windows = "win" in os.environ.get("QUANTMF_PLATFORM", sysconfig.get_platform())
        to = Path(self.root) / "build" / ("quantmf.exe" if windows else "quantmf")
        to.parent.mkdir(exist_ok=True)
        given = os.environ.get("QUANTMF_PROGRAM")
        if given:
            shutil.copyfile(given, to)
        else:
            source = Path(self.root).parent
            if not (source / "go.mod").exists():
                raise RuntimeError(
                    "the sources in Go are not beside this folder: set QUANTMF_PROGRAM to a program of quantmf"
                )
            subprocess.run(
                ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(to), "./cmd/quantmf"],
                cwd=source,
                env={**os.environ, "CGO_ENABLED": "0"},
                check=True,
            )
        to.chmod(0o755)
        build_data["force_include"][str(to)] = f"quantmf/bin/{to.name}"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ.get("QUANTMF_PLATFORM", platform())


def platform():
    """Return the tag of this machine. The program is static, so that any Linux will do."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if name.startswith("linux_"):
        machine = name[len("linux_") :]
        return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    return name
