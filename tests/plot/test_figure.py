"""Figures show themselves in a notebook, and leave matplotlib as it was."""

from __future__ import annotations

import struct
import subprocess
import sys

import matplotlib
import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.plot_figures import FIGURES


def test_plots_leave_global_settings_and_pyplot_alone() -> None:
    """Callbacks draw on other threads, where pyplot must not be touched; the user's settings are the user's."""
    code = "import sys, famnb.plot; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
    before = dict(matplotlib.rcParams)
    FIGURES["latency of many groups"]()._repr_mimebundle_()
    assert dict(matplotlib.rcParams) == before


def test_an_image_is_sharp_and_says_what_it_shows() -> None:
    """Two pixels for one of the page, transparent corners, and words for those who cannot see it."""
    data, metadata = FIGURES["latency of one call"]()._repr_mimebundle_()
    width, height = struct.unpack(">II", data["image/png"][16:24])
    shown = metadata["image/png"]
    assert (width, height) == (2 * shown["width"], 2 * shown["height"])
    assert shown["width"] == 800
    assert shown["alt"] == "Time to first token by model: m (n=1), 500 ms"
    assert data["text/plain"] == "<Figure: Time to first token by model: m (n=1), 500 ms>"


@pytest.mark.parametrize("first", ["", "%matplotlib inline", "import matplotlib.pyplot as plt"])
def test_a_figure_shows_itself_once(first: str) -> None:
    """As the last value of a cell, in a real kernel, with and without pyplot's own way of showing figures."""
    cell = f"{first}\nimport famnb\nfamnb.plot.latency(famnb.calls())"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    outputs = notebook.cells[0].outputs
    assert [list(output.data) for output in outputs] == [["image/png", "text/plain"]]
    assert outputs[0].metadata["image/png"]["width"] == 800
