"""The runtime on a bare page, given only what the widget contract promises, as VS Code, Colab and marimo do."""

import json

import pytest
from playwright.sync_api import Page, expect

from famnb.events import Closed, Delta
from famnb.widget.html import sanitize
from famnb.widget.live.reply_view import ReplyView
from famnb.widget.runtime.front_end import read_loader, read_modules, read_style
from tests.support.front_page import HAS_CLIPBOARD, START, Bridge, IdleFlusher
from tests.support.scripted_stream import ScriptedStream
from tests.support.waiting import wait_until

TEXT = (0, 1)


@pytest.fixture
def stream() -> ScriptedStream:
    return ScriptedStream()


@pytest.fixture
def live(page: Page, stream: ScriptedStream) -> Bridge:
    """The live view of a stream that has said nothing yet."""
    bridge = Bridge(page, ReplyView(stream, flusher=IdleFlusher()))
    page.evaluate(START, ["/tools/live.js", True])
    bridge.deliver()
    return bridge


def test_a_reply_grows_from_its_status_to_its_figures(live: Bridge, stream: ScriptedStream):
    page = live.page
    expect(page.locator(".famnb-state")).to_have_text("waiting for the reply …")
    stream.add(Delta(TEXT, "thinking", "Hm."))
    live.flush()
    expect(page.locator(".famnb-state")).to_have_text("thinking …")
    expect(page.locator("details[open]")).to_contain_text("Hm.")
    stream.add(Delta((1, 1), "text", "It is."))
    live.flush()
    live.flush()
    expect(page.locator("details:not([open]) summary")).to_contain_text("thought")
    expect(page.locator(".famnb-text")).to_have_text("It is.")
    stream.end(status="completed")
    live.flush()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator(".famnb-figures")).not_to_be_empty()


def test_a_gap_is_closed_by_the_whole_view(live: Bridge, stream: ScriptedStream):
    stream.add(Delta(TEXT, "text", "one"))
    live.flush()
    stream.add(Delta(TEXT, "text", " two"))
    live.tool.flush()
    live.sent.clear()
    stream.add(Delta(TEXT, "text", " three"))
    live.page.clock.fast_forward(1100)
    live.flush()
    expect(live.page.locator(".famnb-text")).to_have_text("one two three")


def test_everything_is_asked_for_again_at_most_once_a_second(page: Page):
    page.evaluate(START, ["/tools/live.js", True])
    patch = "seq => window.notifyListeners('msg:custom', { kind: 'patch', seq, more: {} })"
    for seq in range(5, 15):
        page.evaluate(patch, seq)
    assert page.evaluate("window.sent.length") == 1
    page.clock.fast_forward(1100)
    page.evaluate(patch, 15)
    page.evaluate(patch, 16)
    assert page.evaluate("window.sent.map(({ kind }) => kind)") == ["ready", "ready"]


def test_the_page_makes_what_changes_leave_out(live: Bridge, stream: ScriptedStream):
    text = "Tall 🌊 “waves”\n\n\nof *two* kinds\n\n- one\n- **two** <b>\n\nare seen & told,\na fact\n\nin the end"
    for character in text:
        stream.add(Delta(TEXT, "text", character))
        live.flush()
    stream.add(Closed(TEXT))
    live.flush()
    live.flush()
    parsed = live.page.evaluate(
        "html => new DOMParser().parseFromString(html, 'text/html').body.innerHTML", str(sanitize.render_markdown(text))
    )
    assert live.page.locator(".famnb-text .famnb-frozen").inner_html() == parsed
    expect(live.page.locator(".famnb-text .famnb-tail")).to_be_empty()


def test_what_follows_a_draft_continues_its_last_block(page: Page):
    texts = [("A **big** nail\nand ", "two"), ("A **big** ", "nail"), ("- one\n- *t*wo", " three"), ("```py\nx\n", "y")]
    shown = page.evaluate(
        """async (texts) => {
          const names = ["vendor/preact.js", "runtime/growing.js", "parts/markdown.js"];
          const [{ h, render }, { Growing }, { Markdown }] = await Promise.all(names.map((name) => import(`/${name}`)));
          return texts.map(([draft, text, html]) => {
            const body = new Growing("1");
            body.set({ html: "", tail: "" });
            render(h(Markdown, { body }), document.body);
            body.add([["draft", html, draft], ["text", text]]);
            return document.body.innerText.trim();
          });
        }""",
        [[draft, text, str(sanitize.render_draft(draft))] for draft, text in texts],
    )
    assert shown == ["A big nail\nand two", "A big nail", "one\ntwo three", "x\ny"]


def test_a_stop_that_the_kernel_does_not_hear_interrupts_it(live: Bridge, stream: ScriptedStream):
    stop = live.page.get_by_role("button", name="Stop")
    stop.click()
    live.deliver()
    assert stream.stopped
    live.page.clock.fast_forward(400)
    with live.page.expect_request("**/api/kernels/k/interrupt") as interrupt:
        stop.click()
        live.page.clock.fast_forward(400)
    assert interrupt.value.method == "POST"
    expect(live.page.locator(".famnb-state")).to_have_text("stopping …")


def test_what_is_pressed_is_locked_until_it_is_answered_and_keeps_the_focus(live: Bridge):
    stop = live.page.get_by_role("button", name="Stop")
    stop.dblclick()
    stop.click(force=True)
    expect(stop).to_have_attribute("aria-disabled", "true")
    expect(stop).to_be_focused()
    assert live.page.evaluate("window.sent.length") == 1
    live.deliver()
    expect(stop).not_to_have_attribute("aria-disabled", "true")


def test_focus_and_selection_stay_through_patches(live: Bridge, stream: ScriptedStream):
    stop = live.page.get_by_role("button", name="Stop")
    stop.focus()
    stream.exchange.service = "sim"
    stream.add(Delta(TEXT, "text", "one"))
    live.flush()
    expect(live.page.locator(".famnb-badge")).to_have_text("simulated")
    expect(stop).to_be_focused()


def test_a_reply_whose_kernel_is_gone_does_not_seem_to_go_on(live: Bridge, stream: ScriptedStream):
    stream.add(Delta(TEXT, "text", "one"))
    live.flush()
    live.page.evaluate("window.notifyListeners('comm_live_update')")
    expect(live.page.get_by_role("alert").filter(has_text="kernel has ended")).to_be_visible()
    expect(live.page.locator(".famnb-state")).to_contain_text("kernel has ended")
    expect(live.page.get_by_role("button", name="Copy answer")).to_be_enabled()
    expect(live.page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(live.page.locator(".famnb-clock")).to_have_count(0)


def test_a_kernel_that_was_shut_down_is_noticed_by_the_first_message(live: Bridge):
    live.page.evaluate("window.isShutDown = true")
    live.page.get_by_role("button", name="Stop").click()
    expect(live.page.get_by_role("alert").filter(has_text="run the notebook again")).to_be_visible()


def test_a_page_without_an_answer_says_that_it_waits(page: Page):
    page.evaluate(START, ["/tools/live.js", True])
    banner = page.get_by_role("alert").first
    page.clock.run_for(1100)
    expect(banner).to_have_text("Waiting for the kernel … If it does not answer, run the notebook again.")


def test_an_error_stands_under_the_tool(live: Bridge):
    live.tool.show_error(ValueError("too much"))
    live.flush()
    expect(live.page.get_by_role("alert").filter(has_text="ValueError: too much")).to_be_visible()


def test_two_views_of_one_model_show_the_same(live: Bridge, stream: ScriptedStream):
    live.page.evaluate("""() => {
      document.body.insertAdjacentHTML("beforeend", "<section></section>");
      window.draw("section");
    }""")
    stream.add(Delta(TEXT, "text", "one"))
    live.flush()
    expect(live.page.locator(".famnb-text")).to_have_text(["one", "one"])
    live.page.evaluate("window.end()")
    stream.add(Delta(TEXT, "text", " two"))
    live.flush()
    expect(live.page.locator(".famnb-text")).to_have_text(["one two"])


HAS_NONE = """() => {
  Object.defineProperty(navigator, "clipboard", { value: undefined });
  document.addEventListener("copy", () => { window.copied = document.activeElement.value; });
}"""


@pytest.mark.parametrize("clipboard", [HAS_CLIPBOARD, HAS_NONE], ids=["clipboard", "no clipboard"])
def test_code_and_answers_are_copied_by_keyboard(live: Bridge, stream: ScriptedStream, clipboard: str):
    page = live.page
    page.evaluate(clipboard)
    stream.add(Delta(TEXT, "text", "**So:**\n\n```python\nx = 1  # one\n```\n\nand so on"))
    live.flush()
    for name, text in (("Copy code", "x = 1  # one\n"), ("Copy answer", "So:\n\nx = 1  # one\n\nand so on")):
        page.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        expect(page.locator(".famnb-copier", has=page.get_by_role("button", name=name))).to_contain_text("Copied")
        assert page.evaluate("window.copied").split() == text.split()
        expect(page.get_by_role("button", name=name)).to_be_focused()


def test_long_words_tables_and_code_do_not_widen_the_page(live: Bridge, stream: ScriptedStream):
    wide = "|" + "|".join(f"column_{n}" for n in range(60)) + "|\n" + "|-" * 60 + "|\n" + "|1" * 60 + "|"
    stream.add(Delta(TEXT, "text", f"{'W' * 3000}\n\n{wide}\n\n```\n{'x' * 3000}\n```\n\n{'z' * 3000}"))
    stream.add(Delta((0, 2), "tool_call", "y" * 3000))
    live.flush()
    width = live.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width[0] == width[1]
    for part in ("div:has(> table)", "pre"):
        box = live.page.locator(f".famnb-frozen {part}").first
        assert box.evaluate("each => each.scrollWidth > each.clientWidth")


def test_a_reader_at_the_end_stays_there_and_one_who_scrolled_up_is_left_alone(live: Bridge, stream: ScriptedStream):
    box = live.page.locator(".famnb-thinking")
    distance = "each => each.scrollHeight - each.scrollTop - each.clientHeight"
    for number in range(40):
        stream.add(Delta(TEXT, "thinking", f"word {number}\n\n"))
        live.flush()
        assert box.evaluate(distance) < 24
    box.hover()
    live.page.mouse.wheel(0, -500)
    wait_until(lambda: box.evaluate(distance) > 400)
    top = box.evaluate("each => each.scrollTop")
    for number in range(40):
        stream.add(Delta(TEXT, "thinking", f"word {number}\n\n"))
        live.flush()
    assert box.evaluate("each => each.scrollTop") == top


def test_tools_that_share_modules_load_each_once(page: Page):
    page.route(
        "http://open.test/**",
        lambda route: route.fulfill(
            body="<!doctype html><main></main>" if route.request.url.endswith("/") else read_loader(),
            content_type="text/html" if route.request.url.endswith("/") else "text/javascript",
        ),
    )
    page.goto("http://open.test/")
    count = page.evaluate(
        """async ([texts]) => {
          let count = 0;
          const create = URL.createObjectURL;
          URL.createObjectURL = (blob) => { count += 1; return create(blob); };
          const { default: load } = await import("/loader.js");
          const widget_manager = { get_model: async (id) => ({ get: () => texts[id] }) };
          for (const id of ["live", "inspector", "live"]) {
            const traits = { _modules: `IPY_MODEL_${id}`, _style: "IPY_MODEL_style" };
            const model = { get: (name) => traits[name], on: () => {}, send: () => {}, widget_manager };
            const front = load();
            await front.initialize({ model });
            front.render({ model, el: document.querySelector("main") });
          }
          return [count, document.querySelectorAll("style").length];
        }""",
        [
            {
                "live": read_modules("tools/live.js"),
                "inspector": read_modules("tools/inspector.js"),
                "style": read_style(),
            }
        ],
    )
    names = {name for tool in ("live", "inspector") for name, _ in json.loads(read_modules(f"tools/{tool}.js"))}
    assert count == [len(names), 1]
