"""The composer on a bare page beside its Python: what is written, sent, decided and kept, whatever comes meanwhile."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

import famnb
from famnb.events import Delta
from famnb.widget import Composer
from tests.support.composers import texts_of
from tests.support.front_page import HAS_CLIPBOARD, FormBridge
from tests.support.waiting import wait_until

TEXT = (0, 1)


class Chat(FormBridge):
    """A composer whose answers are written by the test."""

    def __init__(self, page: Page, **settings: Any) -> None:
        super().__init__(page, "/tools/composer.js", lambda client: Composer(client, endpoint="chat", **settings))
        self.composer = self.tool

    @property
    def prompts(self) -> list[Any]:
        """What was sent."""
        return [stream.exchange.request.messages[-1].content for stream in self.streams]

    def answer(self, text: str) -> None:
        """End the answer that is written."""
        self.streams[-1].add(Delta(TEXT, "text", text))
        self.streams[-1].end(status="completed")
        replies = len(self.composer.replies)
        self.deliver_until(lambda: len(self.composer.replies) > replies and not self.composer.view().is_busy)
        self.deliver_all()

    def ask(self, prompt: str, answer: str) -> None:
        self.send(prompt)
        self.answer(answer)


@pytest.fixture
def chat(page: Page) -> Chat:
    """A composer of the chat endpoint."""
    return Chat(page)


def test_a_prompt_is_written_sent_and_stopped_by_keyboard(chat: Chat):
    keyboard = chat.page.keyboard
    chat.prompt.focus()
    keyboard.type("Hi")
    keyboard.press("Shift+Enter")
    keyboard.type("there")
    keyboard.press("Enter")
    expect(chat.prompt).to_have_value("")
    chat.deliver()
    assert chat.prompts == ["Hi\nthere"]
    expect(chat.button("Send")).to_have_count(0)
    keyboard.press("Escape")
    chat.deliver_until(lambda: chat.streams[0].stopped)
    chat.answer("Hello")


def test_what_could_not_be_sent_comes_back_above_what_was_written_since(chat: Chat):
    chat.client.close()
    del chat.client.engine.start  # the class's own again
    chat.prompt.fill("one")
    chat.prompt.press("Enter")
    chat.deliver()
    expect(chat.prompt).to_have_value("one")
    expect(chat.page.get_by_role("alert").filter(has_text="closed")).to_be_visible()
    chat.prompt.press("Enter")
    chat.prompt.fill("two")
    chat.deliver()
    expect(chat.prompt).to_have_value("one\ntwo")


def test_enter_while_an_answer_is_written_sends_when_it_has_ended(chat: Chat):
    chat.prompt.fill("one")
    chat.prompt.press("Enter")
    chat.prompt.fill("two")
    chat.prompt.press("Enter")  # the kernel has not taken the first yet
    chat.deliver()
    expect(chat.page.locator(".famnb-writer")).to_contain_text("Sent when the answer has ended")
    assert chat.prompts == ["one"]
    chat.streams[-1].end(status="completed")
    chat.deliver_until(lambda: chat.prompts == ["one", "two"])
    expect(chat.prompt).to_have_value("")
    for take_back in (lambda: chat.prompt.fill("three, edited"), lambda: chat.prompt.press("Escape")):
        chat.prompt.fill("three")
        chat.prompt.press("Enter")
        expect(chat.page.locator(".famnb-writer")).to_contain_text("Sent when")
        take_back()
        expect(chat.page.locator(".famnb-writer")).not_to_contain_text("Sent when")
    chat.answer("So")
    assert chat.prompts == ["one", "two"]


def test_a_double_click_sends_once(chat: Chat):
    chat.prompt.fill("Hi")
    chat.button("Send").dblclick()
    chat.prompt.press("Control+Enter")
    sent = [message for message in chat.page.evaluate("window.sent") if message.get("name") == "send_prompt"]
    assert len(sent) == 1
    chat.deliver()
    chat.answer("Hello")
    assert chat.prompts == ["Hi"]


def test_an_edit_is_sent_when_the_typing_pauses_and_before_what_depends_on_it(chat: Chat):
    chat.page.get_by_label("max_tokens", exact=True).press_sequentially("300")
    chat.prompt.fill("Hi")
    chat.prompt.press("Enter")
    sent = [(message["name"], message["args"].get("text")) for message in chat.page.evaluate("window.sent")]
    assert sent.count(("set_field", "300")) == 1
    chat.deliver()
    assert chat.streams[0].exchange.request.max_tokens == 300
    chat.answer("Hello")


def test_every_kind_of_field_is_written_shown_and_mended(chat: Chat):
    page = chat.page
    page.get_by_label("model", exact=True).select_option("another …")
    page.get_by_label("model id").fill("acme/big")
    chat.pause()
    assert texts_of(chat.composer)["model"] == "acme/big"
    chat.tool.choose_endpoint("responses")
    chat.deliver_all()
    for summary in page.locator(".famnb-group > summary").all():
        if not summary.evaluate("each => each.parentElement.open"):
            summary.click()
    page.get_by_label("model", exact=True).select_option("fam-2-5-mini")
    page.get_by_label("stream", exact=True).select_option("no")
    page.get_by_label("reasoning.effort", exact=True).select_option("low")
    page.get_by_label("temperature", exact=True).fill("0.5")
    page.get_by_label("input", exact=True).fill("[1")
    page.get_by_label("max_output_tokens", exact=True).fill("many")
    chat.pause()
    texts = texts_of(chat.composer)
    fields = ("model", "stream", "reasoning.effort", "temperature", "input", "max_output_tokens")
    assert [texts[name] for name in fields] == ["fam-2-5-mini", "false", "low", "0.5", "[1", "many"]
    for name, fault in (("input", "this is not JSON yet"), ("max_output_tokens", "a whole number is expected")):
        expect(page.get_by_label(name, exact=True)).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_role("alert").filter(has_text=fault)).to_be_visible()
    expect(page.locator("summary", has_text="Conversation")).to_contain_text("invalid")
    expect(chat.button("Settings")).to_have_class("famnb-button famnb-tab famnb-faulty")
    page.get_by_label("temperature", exact=True).fill("")
    page.get_by_label("reasoning.effort", exact=True).select_option("")
    expect(page.get_by_label("reasoning.effort", exact=True)).to_have_class("famnb-input famnb-unset")
    page.get_by_label("max_output_tokens", exact=True).fill("30")
    chat.pause()
    expect(page.get_by_role("alert").filter(has_text="a whole number")).to_be_hidden()


def test_a_request_that_is_loaded_is_shown_in_every_box(chat: Chat):
    chat.prompt.fill("mine")
    chat.page.get_by_label("temperature", exact=True).fill("1")
    chat.pause()
    chat.tool.load(famnb.compose("chat", "Theirs", system="Be kind.", temperature=0.2))
    chat.deliver_all()
    expect(chat.prompt).to_have_value("Theirs")
    expect(chat.page.get_by_label("temperature", exact=True)).to_have_value("0.2")
    expect(chat.page.get_by_label("System")).to_have_value("Be kind.")


def test_values_of_variables_are_written_on_while_a_column_is_added(chat: Chat):
    chat.prompt.fill("Hello {city}")
    chat.pause()
    chat.page.get_by_label("city, row 1").fill("Oso")
    chat.page.keyboard.press("ArrowLeft")
    chat.tool.set_prompt("Hello {city} and {thing}")
    chat.deliver_all()
    chat.page.keyboard.insert_text("l")
    expect(chat.page.get_by_label("city, row 1")).to_have_value("Oslo")
    chat.pause()
    assert list(chat.composer.view().prompt.variables.rows) == [{"city": "Oslo"}]
    expect(chat.page.get_by_label("thing, row 1")).to_be_visible()


def test_a_turn_is_edited_retried_and_switched(chat: Chat):
    chat.ask("<b>Hi</b>", "one")
    chat.button("Edit").click()
    box = chat.page.get_by_label("Edit prompt")
    expect(box).to_have_value("<b>Hi</b>")
    box.fill("Hello")
    chat.tool.set_field("temperature", "0.3")
    chat.deliver_all()
    expect(box).to_have_value("Hello")
    expect(box).to_be_focused()
    chat.button("Resend").click()
    chat.deliver()
    expect(box).to_have_count(0)
    expect(chat.button("Edit")).to_be_focused()
    chat.answer("two")
    expect(chat.page.locator(".famnb-turn")).to_contain_text("2 of 2")
    chat.button("Previous version").click()
    chat.deliver()
    expect(chat.page.locator(".famnb-text")).to_have_text("one")
    expect(chat.button("Previous version")).to_be_focused()
    chat.button("Next version").click()
    chat.deliver()
    expect(chat.page.locator(".famnb-text")).to_have_text("two")
    chat.button("Retry").dblclick()
    chat.deliver()
    chat.answer("three")
    assert chat.prompts == ["<b>Hi</b>", "Hello", "Hello"]
    expect(chat.button("Retry")).to_be_focused()
    chat.button("New chat").click()
    chat.deliver()
    expect(chat.page.locator(".famnb-pane")).to_have_count(0)
    expect(chat.prompt).to_be_focused()


def test_an_edited_prompt_is_kept_while_another_answer_is_written(chat: Chat):
    chat.ask("Hi", "one")
    chat.button("Edit").click()
    box = chat.page.get_by_label("Edit prompt")
    box.fill("Hello")
    chat.composer.say("Meanwhile")
    chat.deliver_until(lambda: chat.button("Resend").get_attribute("aria-disabled"))
    box.press("Enter")
    chat.answer("two")
    assert chat.prompts == ["Hi", "Meanwhile"]
    expect(box).to_have_value("Hello")


def test_a_turn_is_copied_as_markdown(chat: Chat):
    chat.ask("Hi", "**one**")
    chat.page.evaluate(HAS_CLIPBOARD)
    chat.button("Copy as Markdown").click()
    chat.deliver()
    expect(chat.page.locator(".famnb-copier", has=chat.button("Copy as Markdown"))).to_contain_text("Copied")
    copied = chat.page.evaluate("window.copied")
    assert copied.index("Hi") < copied.index("**one**")


def test_without_its_kernel_it_is_grey_and_says_so(chat: Chat):
    chat.ask("Hi", "one")
    chat.prompt.fill("And?")
    chat.page.evaluate("window.notifyListeners('comm_live_update')")
    before = chat.page.evaluate("window.sent.length")
    expect(chat.page.get_by_role("alert").filter(has_text="run the notebook again")).to_be_visible()
    expect(chat.button("Copy answer")).to_be_enabled()
    for name in ("Send", "Retry", "Edit", "New chat", "Settings"):
        expect(chat.button(name)).to_be_disabled()
    chat.prompt.press("Control+Enter")
    chat.page.clock.fast_forward(300)
    assert chat.page.evaluate("window.sent.length") == before
    expect(chat.prompt).to_have_value("And?")


GIVE_IMAGE = """gesture => {
  const bytes = Uint8Array.from([137, 80, 78, 71, 13, 10, 26, 10, 0]);
  const data = new DataTransfer();
  data.items.add(new File([bytes], `${gesture}.png`, { type: "image/png" }));
  const event = gesture === "paste"
    ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(".famnb-writer .famnb-prompt").dispatchEvent(event);
}"""


def test_images_are_pasted_dropped_and_shown_by_thumbnails(chat: Chat):
    shown = chat.page.locator(".famnb-pictures img")
    chat.page.evaluate(GIVE_IMAGE, "paste")
    chat.deliver_until(lambda: shown.count() == 1)
    chat.page.evaluate(GIVE_IMAGE, "drop")
    chat.deliver_until(lambda: shown.count() == 2)
    chat.tool.add_image("https://example.org/b")
    chat.deliver_all()
    images = chat.page.get_by_role("list", name="Images")
    expect(images.locator("li")).to_have_count(3)
    expect(images.locator("img")).to_have_count(2)
    chat.button("Remove paste.png").click()
    chat.deliver()
    expect(images.locator("li")).to_have_text(["drop.png, png, 1 kB×", "linkhttps://example.org/b×"])


@pytest.mark.parametrize("height", [500, 1000])
def test_the_box_stays_where_it_is_while_an_answer_grows(page: Page, height: int):
    page.set_viewport_size({"width": 1400, "height": height})
    chat = Chat(page)
    box = page.locator(".famnb-writer")
    chat.prompt.fill("Hi")
    chat.prompt.press("Enter")
    chat.deliver()
    before = box.bounding_box()
    assert before is not None
    assert before["y"] + before["height"] <= height
    chat.streams[0].add(Delta(TEXT, "text", "line\n\n" * 200))
    region = page.get_by_role("region", name="Chat")
    chat.deliver_until(lambda: region.evaluate("each => each.scrollHeight > 2 * each.clientHeight"))
    wait_until(lambda: region.evaluate("each => each.scrollHeight - each.scrollTop - each.clientHeight") < 2)
    assert box.bounding_box() == before
    chat.answer("end")
