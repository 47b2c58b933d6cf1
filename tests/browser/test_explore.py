"""The explorer in a real JupyterLab: 100,000 points, each of which is found, opened and brushed."""

from typing import Any

import numpy as np
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab

SETUP = """
import famnb
client = famnb.connect(ledger="explore.sqlite")
ids = []
for question in ("What is a tide?", "Why is the sky blue?", "<img src=x onerror=alert(1)> hostile"):
    client.ask(question, model="fam-2-5-pro", endpoint="messages", max_tokens=64, stream=False)
    ids.append(client.last.call_id)"""
# Run here and in the kernel: what is expected, and what is shown.
POINTS = """
import numpy, pandas
N = 100_000
random = numpy.random.default_rng(5)
x, y = random.normal(50, 12, N).clip(0), random.lognormal(0, 0.5, N)
"""
FRAME = """
frame = pandas.DataFrame({
    "seconds": x, "dollars": y, "kind": numpy.where(numpy.arange(N) % 3, "odd", "even"),
    "prompt": [f"prompt number {n}" for n in range(N)], "call_id": [ids[n % 3] for n in range(N)]})
explorer = famnb.plot.explore(frame, x="seconds", y="dollars", by="kind")
explorer"""


def places(over: Locator) -> np.ndarray[Any, Any]:
    """Where each point lies, in pixels of the plot: from 0 on, and at the far end with 3 % of the span to spare."""
    known: dict[str, Any] = {}
    exec(POINTS, known)
    box = over.bounding_box()
    assert box is not None
    columns = []
    for values, length in ((known["x"], box["width"]), (known["y"], box["height"])):
        high = values.max() + (values.max() - values.min()) * 0.03
        columns.append(values / high * length)
    return np.column_stack([columns[0], box["height"] - columns[1]])


def test_of_100_000_points_each_is_found_opened_and_brushed(lab: Lab):
    lab.notebook(SETUP, POINTS + FRAME, "print(*explorer.selection.index)").run(0)
    lab.run(1)
    shown = lab.output(1).get_by_role("group", name="Explorer", exact=True)
    over = shown.get_by_role("application")
    expect(over).to_have_attribute(
        "aria-label",
        "dollars against seconds, 100,000 points; arrow keys go from point to "
        "point, Enter opens one, Space marks two corners of an area",
    )
    over.scroll_into_view_if_needed()
    where, box = places(over), over.bounding_box()
    assert box is not None
    tip = shown.locator(".famnb-tip")
    # In the thick of it, and the outermost: the one that lies nearest to the pointer.
    for pointer in ((0.5 * box["width"], 0.85 * box["height"]), tuple(where[where[:, 1].argmin()] + 2)):
        nearest = int(((where - pointer) ** 2).sum(axis=1).argmin())
        lab.page.mouse.move(box["x"] + pointer[0], box["y"] + pointer[1])
        expect(tip).to_contain_text(f"prompt number {nearest}")
        expect(tip).to_contain_text("even" if nearest % 3 == 0 else "odd")
    lab.page.mouse.down()
    lab.page.mouse.up()
    question = ("What is a tide?", "Why is the sky blue?", "hostile")[nearest % 3]
    expect(shown.locator(".famnb-sheet")).to_contain_text(question)

    # An area on the right, by mouse: what it holds is what `selection` holds.
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    left, top = 0.8 * box["width"], 0.1 * box["height"]
    lab.page.mouse.move(box["x"] + left, box["y"] + top)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1, steps=3)
    lab.page.mouse.up()
    inside = np.flatnonzero((where[:, 0] >= left) & (where[:, 1] >= top))
    expect(shown.get_by_role("status").filter(has_text="chosen")).to_contain_text(f"{len(inside):,} of 100,000 rows")
    lab.run(2)
    assert lab.output(2).locator("pre").inner_text().split() == [str(row) for row in inside]

    # By keys: the last one along x opens; two corners are an area; Escape chooses all again.
    over.focus()
    lab.page.keyboard.press("End")
    last = int(where[:, 0].argmax())
    expect(tip).to_contain_text(f"prompt number {last}")
    lab.page.keyboard.press(" ")
    lab.page.keyboard.press("ArrowLeft")
    lab.page.keyboard.press(" ")
    expect(shown.get_by_role("status").filter(has_text="chosen")).to_contain_text("2 of 100,000 rows")
    lab.page.keyboard.press("Enter")
    rows = shown.get_by_role("grid", name="Rows").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(shown.locator("tr[aria-selected=true]")).to_contain_text("prompt number")
    lab.page.keyboard.press("Escape")
    expect(shown.get_by_text("100,000 rows; the last 100")).to_be_visible()
    assert lab.dialogs == []
