"""The dashboard and the inspector in a real JupyterLab: beside each other, saved, and without their kernel."""

from playwright.sync_api import expect

from tests.browser.lab_page import Lab

SETUP = """
import famnb
client = famnb.connect(ledger="saved.sqlite")
famnb.Dashboard(client)
"""
BESIDE = """import ipywidgets
reply = client.ask("Why?", max_tokens=64)
panel, sheet = famnb.Dashboard(client), famnb.Inspector(reply)
ipywidgets.HBox([panel, sheet])"""


def test_what_is_saved_reads_without_a_kernel_and_a_restart_greys_it(lab: Lab):
    lab.notebook(SETUP, BESIDE, "sheet").run(0)
    lab.page.set_viewport_size({"width": 1000, "height": 900})
    for number in (1, 2):
        lab.run(number)
    expect(lab.output(1).get_by_role("group", name="Dashboard")).to_contain_text("time to first token")
    expect(lab.output(1).get_by_role("group", name="Inspector")).to_contain_text("Why?")
    for card in lab.output(1).locator(".famnb-card").all():
        assert card.evaluate("card => card.scrollWidth <= card.clientWidth")
    expect(lab.output(0)).to_contain_text("time to first token")
    expect(lab.output(0).locator(".famnb-saved")).to_be_hidden()
    lab.output(2).get_by_role("button", name="Continue this chat in a cell below").click()
    expect(lab.output(3).locator(".famnb-composer")).to_contain_text("Why?")
    expect(lab.output(3).get_by_label("Prompt", exact=True)).to_have_value("")
    expect(lab.output(3).get_by_label("Prompt", exact=True)).to_be_focused()
    # The saved output follows within a few seconds.
    expect(lab.output(0).locator(".famnb-saved")).to_contain_text("time to first token")
    cells = lab.save().cells
    for number, word in ((0, "time to first token"), (2, "Why?")):
        pages = [output["data"] for output in cells[number].outputs if "data" in output]
        assert any(word in page.get("text/html", "") for page in pages)
        assert all("VBox(" not in page["text/plain"] for page in pages)

    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for number, count in ((0, 1), (1, 2), (2, 1)):
        expect(lab.output(number).get_by_role("alert").filter(has_text="run the notebook again")).to_have_count(count)
    expect(lab.output(0).get_by_label("Endpoint")).to_be_disabled()
    expect(lab.output(2).get_by_role("button", name="Copy request")).to_be_hidden()

    # Opened again, with a kernel that knows none of the tools.
    lab.load(lab.path.name)
    for number in (0, 2):
        error = lab.output(number).get_by_text("Error displaying widget").first
        expect(error).to_be_attached()
        expect(error).to_be_hidden()
    expect(lab.output(0)).to_contain_text("time to first token")
