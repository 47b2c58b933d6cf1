"""The board on a bare page beside its Python: panes, rounds and answers, whatever comes meanwhile."""

from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from famnb.events import Delta
from famnb.record import Cost
from famnb.widget.board.board import Board
from tests.support.front_page import FormBridge
from tests.support.waiting import wait_until

TEXT = (0, 1)
PAIR = {"a": {"model": "fam-2-5-mini"}, "b": {"model": "fam-mini", "temperature": 0.7}}


class Sheet(FormBridge):
    """A board whose answers are written by the test."""

    def __init__(self, page: Page, variants: Any) -> None:
        super().__init__(page, "/tools/board.js", lambda client: Board(client, variants))
        self.panes = page.locator(".famnb-column")
        self.answers = page.locator(".famnb-pane")

    def say(self, *texts: str) -> None:
        """Have the running answers go on."""
        for stream, text in zip([stream for stream in self.streams if stream.running], texts, strict=True):
            stream.add(Delta(TEXT, "text", text))
        self.flush()

    def end(self, **changes: object) -> None:
        """End the running answers."""
        for stream in self.streams:
            if stream.running:
                stream.end(**{"status": "completed", **changes})
        self.deliver_until(lambda: not self.tool.is_busy)
        self.deliver_all()

    def ask(self, prompt: str, *texts: str) -> None:
        self.send(prompt)
        self.say(*texts)
        self.end()

    def press(self, name: str, index: int = 0) -> None:
        """Press a button and let the kernel answer."""
        self.button(name).nth(index).click()
        self.deliver()


@pytest.fixture
def sheet(page: Page) -> Sheet:
    """A board of two panes."""
    return Sheet(page, PAIR)


def test_a_board_begins_with_its_panes(sheet: Sheet):
    sheet.page.set_viewport_size({"width": 1400, "height": 1000})
    top, empty = (sheet.page.locator(name).bounding_box() for name in (".famnb-board", ".famnb-empty"))
    assert top is not None
    assert empty is not None
    assert empty["y"] - top["y"] <= 130
    sheet.ask("Hi", "one", "two")
    expect(sheet.page.locator(".famnb-empty")).to_have_count(0)


def test_panes_answer_side_by_side_and_each_can_be_stopped(sheet: Sheet):
    sheet.send("Hi")
    sheet.say("<b>one</b>", "two")
    expect(sheet.page.locator(".famnb-text")).to_have_text(["<b>one</b>", "two"])
    expect(sheet.answers.locator(".famnb-state")).to_have_text(["answering …", "answering …"])
    sheet.press("Stop", 1)
    assert [stream.stopped for stream in sheet.streams] == [False, True]
    sheet.streams[1].end(status="cancelled")
    sheet.flush()
    expect(sheet.answers.last.locator(".famnb-head")).to_contain_text("stopped")
    expect(sheet.button("Add a pane")).to_be_disabled()
    sheet.prompt.press("Escape")
    sheet.deliver_until(lambda: sheet.streams[0].stopped)
    sheet.end(status="cancelled")
    expect(sheet.button("Add a pane")).to_be_enabled()


def test_a_winner_is_pinned_and_differences_are_marked(sheet: Sheet):
    sheet.ask("Hi", "the same words", "the other words")
    sheet.press("b: pin as winner")
    assert sheet.tool.winner == "b"
    expect(sheet.page.locator(".famnb-won strong").first).to_have_text("b")
    expect(sheet.button("b: pin as winner")).to_be_focused()
    sheet.press("Differences")
    expect(sheet.answers.first.locator("ins")).to_have_text(["same"])
    expect(sheet.answers.last.locator("ins")).to_have_count(0)
    sheet.press("a: pin as winner")
    expect(sheet.answers.last.locator("ins")).to_have_text(["other"])
    sheet.press("a: pin as winner")
    sheet.press("Differences")
    assert sheet.tool.winner is None
    expect(sheet.page.locator("ins")).to_have_count(0)
    expect(sheet.page.locator(".famnb-text")).to_have_text(["the same words", "the other words"])


def test_an_answer_is_retried_and_the_one_before_is_an_arrow_away(sheet: Sheet):
    sheet.ask("Hi", "one", "two")
    sheet.press("Retry")
    sheet.say("three")
    sheet.end()
    expect(sheet.answers.first.locator(".famnb-place")).to_contain_text("2 of 2")
    sheet.press("Previous answer")
    expect(sheet.answers.first.locator(".famnb-text")).to_have_text("one")
    expect(sheet.button("Previous answer")).to_be_focused()
    sheet.press("Next answer")
    expect(sheet.answers.first.locator(".famnb-text")).to_have_text("three")
    sheet.ask("And?", "four", "five")
    expect(sheet.button("Previous answer")).to_have_attribute("aria-disabled", "true")
    expect(sheet.button("Retry")).to_have_count(2)


def test_a_pane_is_edited_in_place_whatever_comes_meanwhile(sheet: Sheet):
    pane = sheet.panes.last
    pane.get_by_role("button", name="Settings").click()
    field = pane.get_by_label("temperature", exact=True)
    field.fill("0.")
    sheet.tool.set_for_all(max_tokens=50)
    sheet.tool.choose_endpoint("responses", "p2")
    sheet.flush()
    sheet.page.keyboard.type("75")
    expect(field).to_have_value("0.75")
    expect(field).to_be_focused()
    sheet.pause()
    field.fill("3")
    sheet.prompt.fill("Hi")
    sheet.pause()
    expect(pane.get_by_role("alert").filter(has_text="less than or equal to 2")).to_be_visible()
    expect(sheet.button("Send to all")).to_be_disabled()
    field.fill("0.5")
    sheet.pause()
    sheet.prompt.press("Enter")
    sheet.deliver()
    assert sheet.streams[1].exchange.request.temperature == 0.5
    sheet.end()


def test_enter_in_the_temperature_of_a_pane_asks_that_pane_again_with_it(sheet: Sheet):
    pane = sheet.panes.last
    field = pane.get_by_label("temperature", exact=True)
    field.fill("0.3")
    field.press("Enter")
    sheet.deliver()
    assert not sheet.streams
    sheet.ask("Hi", "one", "two")
    field.fill("0.9")
    field.press("Enter")
    sheet.deliver()
    sheet.say("three")
    field.press("Enter")
    sheet.end()
    assert [stream.exchange.request.temperature for stream in sheet.streams] == [0.1, 0.3, 0.9]
    expect(field).to_be_focused()
    expect(sheet.answers.last.locator(".famnb-text")).to_have_text("three")
    sheet.page.keyboard.type("3")
    field.press("Enter")
    sheet.deliver()
    expect(pane.get_by_role("alert").filter(has_text="less than or equal to 2")).to_be_visible()
    assert len(sheet.streams) == 3


def test_what_is_set_for_all_panes_is_sent_by_each(sheet: Sheet):
    sheet.page.get_by_text("For all panes").click()
    shared = sheet.page.locator(".famnb-commons")
    shared.get_by_label("temperature", exact=True).fill("0.2")
    sheet.pause()
    sheet.page.get_by_text("For all panes").click()
    expect(shared).to_contain_text("temperature 0.2")
    sheet.send("Hi")
    assert [stream.exchange.request.temperature for stream in sheet.streams] == [0.2, 0.2]
    sheet.end()


def test_panes_are_added_asked_what_the_others_were_and_removed(sheet: Sheet):
    sheet.ask("Hi", "one", "two")
    sheet.press("Add a pane")
    expect(sheet.panes).to_have_count(3)
    sheet.press("Retry this pane", 2)
    sheet.say("three")
    sheet.end()
    expect(sheet.page.locator(".famnb-text")).to_have_text(["one", "two", "three"])
    sheet.press("Remove pane", 1)
    expect(sheet.panes).to_have_count(2)
    expect(sheet.prompt).to_be_focused()
    expect(sheet.page.locator(".famnb-text")).to_have_text(["one", "three", "two"])
    expect(sheet.answers.last.get_by_role("button", name="Retry")).to_have_count(0)
    sheet.press("Remove pane", 1)
    expect(sheet.button("Remove pane")).to_be_disabled()
    sheet.press("New chat")
    expect(sheet.answers).to_have_count(0)


def test_figures_of_a_pane_take_one_line_each(sheet: Sheet):
    sheet.send("Hi")
    sheet.say("one", "two")
    sheet.streams[0].end(status="failed", error=ConnectionError("no answer"))
    about = Cost(Decimal("0.0012"), Decimal("0.001"), Decimal("0.0021"))
    sheet.end(cost=about)
    expect(sheet.answers.first.locator(".famnb-failure")).to_contain_text("no answer")
    expect(sheet.answers.first.locator("dt:visible")).to_have_text(["tokens", "cost"])
    cost = sheet.answers.last.locator("dd").last
    expect(cost).to_have_text("≈ $0.0012")
    expect(cost).to_have_attribute("title", "≈ $0.0012 ($0.001–$0.0021)")


@pytest.mark.parametrize(("width", "height"), [(700, 1200), (700, 900), (2200, 1200)])
def test_the_newest_line_of_an_answer_and_its_buttons_are_within_the_box(page: Page, width: int, height: int):
    page.set_viewport_size({"width": width, "height": height})
    sheet = Sheet(page, PAIR)
    text = "\n\n".join(f"line {number}" for number in range(100))
    sheet.ask("Hi", text, text)
    ends = """() => [...document.querySelectorAll(".famnb-text p:last-child, .famnb-foot")].map((end) =>
      end.getBoundingClientRect().bottom <= document.querySelector(".famnb-rounds").getBoundingClientRect().bottom)"""
    wait_until(lambda: page.evaluate(ends) == [True] * 4)


def test_an_answer_can_be_read_beside_notes_that_need_more_room_than_there_is(page: Page):
    page.set_viewport_size({"width": 700, "height": 500})
    sheet = Sheet(page, PAIR)
    sheet.send("Hi")
    sheet.say(*["\n\n".join(f"line {number}" for number in range(100))] * 2)
    sheet.end(status="incomplete", finish_reason="length", warnings=("a note " * 30,) * 2)
    head, meters = (sheet.answers.first.locator(name) for name in (".famnb-head", ".famnb-meters"))
    assert all(part.evaluate("part => part.scrollHeight <= part.clientHeight") for part in (head, meters))
    flow = sheet.answers.first.locator(".famnb-flow")
    assert flow.evaluate("flow => flow.clientHeight") >= 40
    flow.get_by_text("line 99").scroll_into_view_if_needed()
    # Waits until nothing covers it.
    flow.get_by_text("line 99").click()


def test_the_box_stays_where_it_is_while_rounds_come_and_the_latest_is_in_view(sheet: Sheet):
    """Unless the reader has scrolled up, who is left there until the next prompt."""
    sheet.page.set_viewport_size({"width": 1300, "height": 900})
    before = sheet.prompt.bounding_box()
    text = "\n\n".join(f"line {number}" for number in range(40))
    for _ in range(3):
        sheet.ask("Hi", text, text)
    assert sheet.prompt.bounding_box() == before
    rounds = sheet.page.locator(".famnb-round")
    expect(rounds.last.locator(".famnb-prompt-text")).to_be_in_viewport()
    expect(rounds.first.locator(".famnb-prompt-text")).not_to_be_in_viewport()
    box = sheet.page.locator(".famnb-rounds")
    box.evaluate("box => { box.scrollTop = 0; }")
    sheet.press("Retry this pane")
    sheet.say(text)
    sheet.end()
    assert box.evaluate("box => box.scrollTop") == 0
    sheet.ask("And?", text, text)
    expect(rounds.last.locator(".famnb-prompt-text")).to_be_in_viewport()


def test_a_temperature_is_changed_and_asked_again_in_three_actions_without_scrolling(sheet: Sheet):
    sheet.page.set_viewport_size({"width": 1300, "height": 900})
    sheet.ask("Hi", "one", "two")
    pane = sheet.panes.first
    pane.get_by_role("button", name="Settings").click()
    field = pane.get_by_label("temperature", exact=True)
    expect(field).to_be_in_viewport(ratio=1)
    field.fill("0.9")
    expect(pane.get_by_role("button", name="Retry this pane")).to_be_in_viewport(ratio=1)
    pane.get_by_role("button", name="Retry this pane").click()
    sheet.deliver()
    assert sheet.streams[-1].exchange.request.temperature == 0.9
    assert sheet.page.evaluate("window.scrollY") == 0
    sheet.say("three")
    sheet.end()


def test_an_answer_is_edited_in_its_place(sheet: Sheet):
    sheet.ask("Hi", "one", "two")
    sheet.press("Edit answer")
    box = sheet.page.get_by_label("Edit answer", exact=True).and_(sheet.page.locator("textarea"))
    expect(box).to_have_value("one")
    expect(box).to_be_focused()
    box.fill("**mine**")
    sheet.press("Save")
    expect(sheet.answers.first.locator(".famnb-text")).to_have_text("mine")
    expect(sheet.answers.first.locator(".famnb-place")).to_contain_text("2 of 2")
    expect(sheet.button("Edit answer").first).to_be_focused()


def test_many_panes_use_a_wide_page_and_their_names_show_what_differs(page: Page):
    page.set_viewport_size({"width": 2200, "height": 1200})
    sheet = Sheet(page, [{"model": "fam-2-5-pro", "temperature": number / 10} for number in range(8)])
    boxes = [pane.bounding_box() for pane in sheet.panes.all()]
    assert len({box["y"] for box in boxes}) == 1
    assert max(box["x"] + box["width"] for box in boxes) > 2100
    names = page.locator(".famnb-column .famnb-title")
    assert len(set(names.all_inner_texts())) == 8
    assert all(name.evaluate("element => element.scrollWidth <= element.clientWidth") for name in names.all())


@pytest.mark.parametrize(("width", "columns"), [(1000, 4), (400, 1)])
def test_answers_stand_in_equal_columns_within_the_page(page: Page, width: int, columns: int):
    page.set_viewport_size({"width": width, "height": 900})
    sheet = Sheet(page, {str(number): {"model": "fam-mini"} for number in range(8)})
    sheet.ask("Hi", *["one two three " * 40] * 8)
    boxes = [answer.bounding_box() for answer in sheet.answers.all()]
    assert len({round(box["x"]) for box in boxes}) == columns
    assert len({round(box["width"]) for box in boxes}) == 1
    assert all(box["x"] + box["width"] <= width for box in boxes)
