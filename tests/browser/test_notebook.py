"""The same widgets in Jupyter Notebook 7: a cell that asks, prompts that are sent by keyboard, a call laid open."""

import contextlib

import nbformat
from playwright.sync_api import Browser, expect

from tests.browser.lab_page import Jupyter, Lab, ask, wait_for_answers

CELLS = (
    'import famnb\nclient = famnb.connect()\nreply = client.ask("Why $5?", max_tokens=300)',
    "composer = famnb.Composer(client)\ncomposer",
    "%load_ext famnb\nfamnb.Board(client, {'small': {'model': 'fam-2-5-mini'}, 'large': {'model': 'fam-2-5-pro'}})",
    "%%fam --endpoint web --into answer\nWhy the sky?",
    "famnb.Dashboard(client)",
)


def test_notebook_7_asks_composes_and_saves(jupyter: Jupyter, browser: Browser):
    path = jupyter.root / "seven.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.goto(f"{jupyter.url}/notebooks/{path.name}")
    # To run a cell before the kernel is connected opens a dialog instead.
    lab = Lab(page, jupyter)
    lab.path = path
    lab.ready()
    first, second, third, fourth, fifth = (page.locator(".jp-CodeCell").nth(number) for number in range(5))
    # On a loaded machine keys that come while the notebook is still being set up are lost.
    for _ in range(5):
        first.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        with contextlib.suppress(AssertionError):
            expect(first.locator(".jp-InputPrompt")).not_to_have_text("[ ]:", timeout=4_000)
            break
    expect(first.locator(".jp-OutputArea")).to_contain_text("tokens out")
    second.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    prompt = second.get_by_label("Prompt", exact=True)
    prompt.focus()
    page.keyboard.type("What is a tide?")
    page.keyboard.press("Control+Enter")
    wait_for_answers(second)
    expect(prompt).to_be_in_viewport()
    for cell in (third, fourth, fifth):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
    ask(third, "Who is it?")
    wait_for_answers(third, 2)
    third.get_by_role("button", name="Add a pane").click()
    expect(third.locator(".famnb-column")).to_have_count(3)
    expect(fourth.locator(".jp-OutputArea")).to_contain_text("in all")
    fifth.get_by_role("grid", name="Calls").locator("tbody tr").first.focus()
    page.keyboard.press("Enter")
    expect(fifth.get_by_role("tab", name="Transcript")).to_be_visible()
    first.locator(".jp-InputPrompt").click()
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        page.keyboard.press("Control+s")

    saved = nbformat.read(path, as_version=4)
    texts = [[output["data"] for output in cell.outputs if "data" in output][-1]["text/plain"] for cell in saved.cells]
    prompts = ("Why $5?", "What is a tide?", "Who is it?", "Why the sky?")
    assert [prompt for prompt, text in zip(prompts, texts, strict=False) if prompt not in text] == []
    context.close()
