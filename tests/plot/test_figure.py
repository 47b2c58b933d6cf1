"""Figures show themselves in a notebook, and leave matplotlib as it was."""

import base64
import inspect
import io
import re
import struct
from pathlib import Path

import matplotlib
import nbformat
import PIL.Image
import pytest
from nbclient import NotebookClient

from famnb import plot
from tests.plot.plot_figures import FIGURES
from tests.support.plot_frames import calls, many_calls


def test_plots_leave_global_settings_alone():
    before = dict(matplotlib.rcParams)
    plot.latency(many_calls(60))._repr_mimebundle_()
    assert dict(matplotlib.rcParams) == before


def test_an_image_is_sharp_and_says_what_it_shows():
    data, metadata = plot.latency(calls(model=["m"], ttft_s=[0.5]))._repr_mimebundle_()
    width, height = struct.unpack(">II", data["image/png"][16:24])
    shown = metadata["image/png"]
    assert (width, height) == (2 * shown["width"], 2 * shown["height"])
    assert shown["width"] == 800
    assert shown["alt"] == "Time to first token by model: m (n=1), 500 ms"
    assert data["text/plain"] == "<Figure: Time to first token by model: m (n=1), 500 ms>"


@pytest.mark.full
@pytest.mark.parametrize("first", ["%matplotlib inline", "", "import matplotlib.pyplot as plt"])
def test_a_figure_shows_itself_once(first: str):
    cell = f"{first}\nimport famnb\nfamnb.plot.latency(famnb.calls())"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    outputs = notebook.cells[0].outputs
    assert [sorted(output.data) for output in outputs] == [["image/png", "text/html", "text/plain"]]
    assert outputs[0].metadata["image/png"]["width"] == 800


def test_a_figure_is_on_a_page_light_and_dark():
    figure = plot.latency(many_calls(60))
    data, _ = figure._repr_mimebundle_()
    shown = re.findall(
        r'class="famnb-on-(light|dark)".*?src="data:image/png;base64,(.*?)"', data["text/html"], re.DOTALL
    )
    images = {name: PIL.Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA") for name, text in shown}
    assert images["light"].size == images["dark"].size
    grounds = {name: image.getpixel((image.width // 2, 12)) for name, image in images.items()}
    assert min(grounds["light"]) > 250
    assert max(grounds["dark"][:3]) < 30
    with matplotlib.rc_context({"figure.facecolor": "black"}):
        assert "text/html" not in plot.latency(many_calls(60))._repr_mimebundle_()[0]


@pytest.mark.parametrize("name", ["latency of equal values", "timeline of a long name"])
def test_a_figure_is_the_same_however_often_it_is_drawn(name: str):
    figure = FIGURES[name]()
    size, first = tuple(figure.get_size_inches()), figure.to_png()
    assert figure.to_png(dark=True) != first
    figure.savefig(io.BytesIO(), format="png", dpi=60)
    assert figure.to_png() == first
    assert tuple(figure.get_size_inches()) == size


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_text_of_a_saved_figure_is_text(form: str, tmp_path: Path):
    before = dict(matplotlib.rcParams)
    plot.latency(many_calls(60)).savefig(tmp_path / f"figure.{form}")
    saved = (tmp_path / f"figure.{form}").read_bytes()
    assert (b">Time to first token by model<" if form == "svg" else b"/Subtype /CIDFontType2") in saved
    assert dict(matplotlib.rcParams) == before


def test_a_saved_figure_is_light_unless_asked(tmp_path: Path):
    figure = plot.latency(many_calls(60))
    figure.savefig(tmp_path / "light.png")
    figure.savefig(tmp_path / "dark.png", dark=True)
    light, dark = (
        PIL.Image.open(tmp_path / f"{name}.png").convert("RGB").getpixel((2, 2)) for name in ("light", "dark")
    )
    assert min(light) == 255
    assert max(dark) < 30
    assert figure.get_facecolor()[:3] == (1, 1, 1)


def test_the_table_of_figures_has_each_and_which_are_interactive():
    functions = sorted(name for name, value in vars(plot).items() if inspect.isfunction(value))
    assert [name for name in functions if f"\n    {name}(" not in (plot.__doc__ or "")] == []
    figures = [name for name in functions if name != "explore"]
    without = [name for name in figures if "interactive" not in inspect.signature(getattr(plot, name)).parameters]
    assert without == ["differences", "gaps", "load"]
    assert "all but gaps, differences and load take" in " ".join((plot.__doc__ or "").split())
