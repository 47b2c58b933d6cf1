"""The same widgets in Jupyter Notebook 7: a cell that asks, and a prompt that is sent by keyboard."""

from __future__ import annotations

import nbformat
import pytest
from labpage import Jupyter
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser

CELLS = (
    'import famnb\nclient = famnb.connect()\nreply = client.ask("Why $5?", max_tokens=300)',
    "composer = famnb.Composer(client)\ncomposer",
)


def test_notebook_7_asks_composes_and_saves(jupyter: Jupyter, browser: Browser):
    """Two cells run, a prompt goes out and its answer comes in, and the saved file holds both transcripts."""
    path = jupyter.root / "seven.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.goto(f"{jupyter.url}/notebooks/{path.name}")
    expect(page.locator(".jp-NotebookPanel-toolbar")).to_contain_text("Python 3")
    first, second = (page.locator(".jp-CodeCell").nth(number) for number in (0, 1))
    first.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(first.locator(".jp-OutputArea")).to_contain_text("tokens out")
    page.keyboard.press("Control+Enter")
    prompt = second.get_by_label("Prompt")
    prompt.focus()
    page.keyboard.type("What is a tide?")
    page.keyboard.press("Control+Enter")
    expect(second.locator(".jp-OutputArea")).to_contain_text("tokens out")
    first.locator(".jp-InputPrompt").click()
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        page.keyboard.press("Control+s")

    saved = nbformat.read(path, as_version=4)
    asked, composed = ([output["data"] for output in cell.outputs if "data" in output] for cell in saved.cells)
    assert "Why $5?" in asked[-1]["text/plain"]
    assert "What is a tide?" in composed[-1]["text/plain"]
    context.close()
