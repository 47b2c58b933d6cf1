"""A run in a real JupyterLab: it moves while a cell waits for it, Stop works by keyboard, its end is plain output."""

import re

from playwright.sync_api import expect

from tests.browser.lab_page import Lab

# Minutes long if nobody stops it: on a busy machine a page takes half of one to load.
SETUP = """
import famnb
client = famnb.connect(ledger="run.sqlite")
famnb.prices.set("fam-2-5-pro", input=1, output=4)
exp = famnb.Experiment(
    [f"Count to {60 + number}." for number in range(30)],
    famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages"), name="run", client=client, max_tokens=900,
)
run = exp.run(wait=False, concurrency=1)
run
"""
WAIT = "report = run.wait()\nprint(report.remaining > 0, report.stopped_by)"
AGAIN = "again = exp.run(wait=False, concurrency=32)\nagain"
ANSWERED = "again.wait()\nprint(exp.frame()['status'].isin(['completed', 'incomplete']).sum())"


def test_a_run_moves_beside_a_cell_and_stops_by_keyboard(lab: Lab):
    lab.notebook(SETUP, WAIT, AGAIN, ANSWERED).run(0)
    shown = lab.output(0)
    bar = shown.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuetext", re.compile("of 60"))
    lab.start(1)
    expect(bar).to_have_attribute("aria-valuetext", re.compile(r"^([3-9]|\d\d) of 60"))
    expect(shown).to_contain_text("plus the unknown cost of")
    expect(shown.get_by_role("row", name="fam-2-5-pro")).to_contain_text("of 30")

    shown.get_by_text("plus the unknown cost of").click()
    focused = shown.locator("button:focus", has_text="Stop")
    for _ in range(5):
        if not focused.count():
            lab.page.keyboard.press("Tab")
    expect(focused).to_be_visible()
    lab.page.keyboard.press("Enter")
    lab.settled(1)
    expect(lab.output(1)).to_contain_text("True stop")
    assert lab.page.locator(".jp-CodeCell").count() == 4
    expect(shown).to_contain_text("Stopped; all that had come is kept.")
    expect(bar).to_have_count(0)

    lab.run(2)
    lab.run(3)
    expect(lab.output(3)).to_contain_text("60")
    expect(lab.output(2)).to_contain_text("left alone of 60 planned")
    saved = [output["data"] for cell in lab.save().cells for output in cell.outputs if "data" in output]
    assert sum("of 60 planned" in data.get("text/html", "") for data in saved) == 2
    assert not [data for data in saved if "application/vnd.jupyter.widget-view+json" in data]
