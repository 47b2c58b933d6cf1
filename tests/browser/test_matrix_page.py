"""The matrix and the table of values on a bare page, by keyboard and by mouse."""

import pytest
from playwright.sync_api import Page, expect

import famnb
from famnb.service import Server
from famnb.widget.board.board import Board
from tests.support.front_page import START, Bridge, FormBridge

pytestmark = pytest.mark.browser
PASTE = """([element, text]) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def test_answers_are_graded_by_key_and_button_and_noted_on(page: Page, server: Server):
    rows = [{"thing": thing} for thing in ("tides", "bees")]
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        matrix = Board(client, prompt="Explain {thing}.", rows=rows).run_rows()
        matrix.wait(60)
    bridge = Bridge(page, matrix)
    page.evaluate(START, ["/tools/matrix.js", False])
    bridge.deliver_until(lambda: not matrix.is_running and page.locator("td .famnb-answer").count() == 4)
    label = matrix.experiment.variants[0].label
    page.get_by_label(f"Answer of {label}, tides").press("p")
    # The next one has the focus, so that a row is graded by keys alone.
    expect(page.get_by_label(f"Answer of {matrix.experiment.variants[1].label}, tides")).to_be_focused()
    bridge.deliver_all()
    chosen = page.get_by_role("button", name=f"pass: {label}, tides")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=f"fail: {label}, bees").click()
    page.get_by_label(f"Note: {label}, bees").fill("wrong")
    bridge.deliver_until(lambda: matrix.view().rows[1].cells[0].note)
    bridge.deliver_all()
    expect(page.locator(".famnb-top .famnb-hint").first).to_contain_text("4 of 4 answers, 2 graded")
    assert sorted(matrix.frame()["score_grade"].dropna()) == [0, 1]
    assert matrix.frame()["note"].dropna().tolist() == ["wrong"]
    number = page.get_by_label(f"Grade as a number: {label}, bees")
    for text in ("0.5", "good"):
        number.fill(text)
        number.press("Enter")
        bridge.deliver_until(lambda: number.input_value() == matrix.view().rows[1].cells[0].grade == "0.5")
        expect(number).to_be_focused()
    matrix.grade("p2", label, "fail")
    page.get_by_label("Show").select_option("pass")
    bridge.deliver_all()
    expect(page.locator("th[scope=row]")).to_have_count(1)


def test_enter_adds_a_row_and_a_pasted_table_fills_the_cells(page: Page):
    sheet = FormBridge(page, "/tools/board.js", lambda client: Board(client, prompt="{a} and {b}"))
    page.get_by_label("a, row 1").fill("one")
    page.get_by_label("a, row 1").press("Enter")
    expect(page.get_by_label("a, row 2")).to_be_focused()
    box = page.get_by_label("b, row 2")
    box.evaluate(f"(element, text) => ({PASTE})([element, text])", 'x\t1\n"y\nz"\t2')
    sheet.deliver_all()
    expect(page.get_by_label("b, row 3")).to_have_value("yz")
    box.evaluate(f"(element, text) => ({PASTE})([element, text])", 'b,a\n"1,5",two\n')
    sheet.deliver_all()
    expect(page.get_by_label("b, row 2")).to_have_value("1,5")
    expect(page.get_by_label("a, row 2")).to_have_value("two")
    assert [row.get("b") for row in sheet.tool.view().prompt.variables.rows[1:]] == ["1,5", "y\nz"]
    prompt = page.get_by_label("Prompt", exact=True)
    prompt.evaluate(f"(element, text) => ({PASTE})([element, text])", "a,b\n7,8\n")
    sheet.deliver_all()
    expect(page.get_by_label("b, row 1")).to_have_value("8")
    expect(prompt).to_have_value("{a} and {b}")
