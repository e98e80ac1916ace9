"""Notebooks run as they stand."""

from pathlib import Path

import pytest

import quantmf

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("scanpy")


def said(notebook):
    return "".join(of.get("text", "") for cell in notebook.cells for of in cell.get("outputs", ()))


def test_cells(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(quantmf.__file__).parents[1]))
    notebook = nbformat.read(Path(__file__).parents[1] / "notebooks" / "cells.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    rand = float(said(notebook).split("labels: ")[1][:4])
    assert rand > 0.4
    inside = float(said(notebook).split("CD3D: ")[1].split("%")[0])
    assert 70 < inside <= 100
