"""The first notebook in a real JupyterLab: everything runs, every endpoint answers, and the saved file tells it all."""

import re
import shutil
from pathlib import Path

from playwright.sync_api import Locator, expect

from famnb.endpoints import ENDPOINTS
from tests.browser.lab_page import Lab, ask, wait_for_answers

START = Path(__file__).parents[2] / "notebooks" / "01-start.ipynb"


def test_the_start_notebook_works_as_a_newcomer_uses_it(lab: Lab):
    shutil.copy(START, lab.jupyter.root / START.name)
    lab.open(START.name).run_all()
    page = lab.page
    page.get_by_label("Prompt").scroll_into_view_if_needed()
    for number, endpoint in enumerate(ENDPOINTS, 1):
        page.get_by_label("Endpoint").select_option(endpoint)
        page.get_by_label("Prompt").fill(f"Question {number}: what is a tide?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".famnb-prompt-text").last).to_contain_text(f"Question {number}")
        # What is sent while a reply still streams is not sent.
        wait_for_answers(page.locator(".famnb-composer"))
        if number < 4:
            page.get_by_role("button", name="New chat").click()
            expect(page.locator(".famnb-prompt-text")).to_have_count(0)

    notebook = lab.save()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output["evalue"] for output in outputs if output.output_type == "error"] == []
    (composed,) = [
        output["data"] for output in outputs if "Question 4" in str(output.get("data", {}).get("text/plain", ""))
    ]
    for form in ("text/html", "text/markdown"):
        assert all(f"Question {number}" in composed[form] for number in (1, 2, 3, 4))
    files = [file for file in lab.jupyter.home.rglob("*") if file.is_file()]
    assert lab.path in files
    assert [file for file in files if lab.jupyter.service.key.encode() in file.read_bytes()] == []


def shown_images(output: Locator) -> list[str]:
    """The classes of the images that can be seen."""
    return [image.get_attribute("class") or "" for image in output.locator("img").all() if image.is_visible()]


def test_a_saved_notebook_reads_without_a_kernel_and_follows_the_theme(lab: Lab):
    """A call, a Composer, a Board and a figure: live, saved, and opened as a stranger's file."""
    lab.notebook(
        "import famnb\nclient = famnb.connect()",
        'reply = client.ask("Why?", thinking=64, max_tokens=300)',
        "composer = famnb.Composer(client)\ncomposer",
        "board = famnb.Board(client)\nboard",
        "famnb.plot.tokens(famnb.calls(client))",
    )
    for number in range(5):
        lab.run(number)
    for number, prompt in ((2, "What is a tide?"), (3, "What is a wave?")):
        ask(lab.output(number).locator(".famnb-tool"), prompt)
        wait_for_answers(lab.output(number), number - 1)  # a Board has two
    expect(lab.output(4).locator("img")).to_have_count(2)
    assert shown_images(lab.output(4)) == ["famnb-on-light"]
    lab.change_theme("JupyterLab Dark")
    expect(lab.output(4).locator(".famnb-on-light")).to_be_hidden()
    assert shown_images(lab.output(4)) == ["famnb-on-dark"]

    lab.save()
    copy = lab.jupyter.root / "from-elsewhere.ipynb"
    # Trust is kept by a signature of the content: another text in the file, and it is a stranger's.
    copy.write_text(lab.path.read_text().replace("(client)", "( client )").replace("client.ask(", "client.ask ("))
    lab.page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
    lab.load(copy.name)
    reply, composer, board, figure = (lab.output(number) for number in range(1, 5))
    expect(reply.locator("details")).not_to_have_attribute("open", "")
    expect(reply.locator("summary")).to_contain_text("thought for")
    expect(reply).to_contain_text("simulated")
    quote = reply.locator("blockquote").first
    assert quote.evaluate("quote => getComputedStyle(quote).backgroundColor") != "rgba(0, 0, 0, 0)"
    expect(composer).to_contain_text("A famnb.Composer: run this cell to use it.")
    expect(composer).to_contain_text("What is a tide?")
    expect(board).to_contain_text("A famnb.Board: run this cell to use it.")
    heads = board.locator("th[scope=col]")
    expect(heads).to_have_text([re.compile("fam-2-5-pro"), re.compile("fam-2-5-mini")])
    first, second = (head.bounding_box() for head in heads.all())
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"] + 1
    expect(figure.locator("img").first).to_be_visible()
    assert shown_images(figure) == ["famnb-on-light"]
