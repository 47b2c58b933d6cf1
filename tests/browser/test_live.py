"""Streams under a cell and in the composer: shown as they come, stopped when asked, whole after a reload, inert."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask

CONNECT = "import famnb\nclient = famnb.connect()"
COMPOSE = "composer = famnb.Composer(client)\ncomposer"
LONG = "Count to 50000, please."
"""It streams for minutes: however slow the machine, there is something to stop."""
ENDLESS = 100_000
FOCUSED = """() => {
  const element = document.activeElement;
  return element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent;
}"""
"""The accessible name of what has the focus."""
GROWN = "length => document.querySelector('.famnb-text').innerText.match(/\\d+/g).length > length"
"""Whether more numbers are shown than that."""


def test_only_ordinary_output_is_left_of_one_call_of_several_at_once_and_in_an_output_widget(lab: Lab):
    asynchronous = "famnb.AsyncClient(base_url=client.base_url(), api_key=famnb.api.embedded()[1])"
    lab.notebook(
        f"{CONNECT}\nimport asyncio, ipywidgets\nasynchronous = {asynchronous}",
        'reply = client.ask("Why $5, or $6?", thinking=64)\nreply',
        "replies = await asyncio.gather(*(asynchronous.ask(f'Count to {n}.') for n in (11, 12, 13)))",
        "box = ipywidgets.Output()\nbox",
        "with box: client.ask('Count to 33.')",
    )
    for number in range(5):
        lab.run(number)
    expect(lab.output(1)).to_contain_text("tokens out")
    expect(lab.output(1)).to_contain_text("Why $5, or $6?")
    expect(lab.output(3).first).to_contain_text("31, 32, 33")
    expect(lab.output(3).first).to_contain_text("tokens out")
    for number in (1, 3):
        expect(lab.output(number).locator(".famnb-pane")).to_have_count(0)
    cells = lab.save().cells
    (output,) = cells[1].outputs
    assert set(output["data"]) == {"text/html", "text/markdown", "text/plain"}
    assert all("Why" in text for text in output["data"].values())
    texts = [output["data"]["text/plain"] for output in cells[2].outputs]
    assert [sum(f"Count to {n}." in text for text in texts) for n in (11, 12, 13)] == [1, 1, 1]
    assert [text.count(",\n11") for text in texts] == [1, 1, 1]


@pytest.mark.always
def test_stop_ends_a_cell_that_waits(lab: Lab):
    lab.notebook(
        CONNECT, f'client.ask("{LONG}", max_tokens={ENDLESS})', "client.last.status, len(client.last.text) > 0"
    )
    lab.run(0)
    lab.start(1)
    live = lab.output(1).locator(".famnb-pane")
    expect(live).to_contain_text("1, 2, 3")
    live.get_by_role("button", name="Stop").click()
    lab.settled(1)
    expect(lab.output(1)).to_contain_text("stopped")
    expect(lab.output(1)).to_contain_text("1, 2, 3")
    lab.run(2)
    expect(lab.output(2)).to_contain_text("('cancelled', True)")


def ask_endlessly(composer: Locator) -> None:
    """Have a composer answer for minutes."""
    composer.get_by_label("max_tokens", exact=True).fill(str(ENDLESS))
    ask(composer, LONG)
    expect(composer.locator(".famnb-pane")).to_contain_text("1, 2, 3")


def test_a_reload_in_the_middle_of_a_stream_shows_all(lab: Lab):
    lab.notebook(CONNECT, COMPOSE, "composer.reply.status, len(composer.replies), composer.reply.text[-20:]")
    lab.run(0)
    lab.run(1)
    composer = lab.output(1).locator(".famnb.famnb-composer")
    ask_endlessly(composer)
    assert "was streaming here" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]
    lab.reload()
    pane = composer.locator(".famnb-pane")
    expect(pane.locator(".famnb-state")).to_contain_text("answering")
    expect(lab.output(1)).to_contain_text("page was reloaded")
    before = len(numbers(pane))
    lab.page.wait_for_function(GROWN, arg=before)
    composer.get_by_role("button", name="Stop").click()
    expect(pane).to_contain_text("stopped")
    *counted, _ = numbers(pane)  # of the last number there may be a part
    assert counted == list(range(1, len(counted) + 1))
    assert len(counted) >= before > 3
    lab.run(2)
    kept = str(lab.save().cells[2].outputs[0]["data"]["text/plain"])
    assert kept.startswith("('cancelled', 1, ")
    assert str(counted[-1]) in kept


def test_a_reload_while_a_cell_waits_shows_the_whole_reply(lab: Lab):
    lab.notebook(CONNECT, 'reply = client.ask("Count to 200, please.", max_tokens=9000)', "reply").run(0)
    lab.start(1)
    expect(lab.output(1).locator(".famnb-pane")).to_contain_text("1, 2, 3")
    assert "was streaming here when this was saved" in lab.save().cells[1].outputs[0]["data"]["text/plain"]
    lab.page.reload()
    output = lab.ready().output(1)
    expect(output).to_contain_text(re.compile("page was reloaded|model not found"))
    if "model not found" in output.inner_text():
        # JupyterLab looks for a widget for two seconds, but not at their very end: what a busy kernel sends in the last
        # tenth of them is not seen until the page is loaded once more.
        lab.reload()
    pane = output.locator(".famnb-pane")
    expect(pane).to_contain_text("page was reloaded")
    assert numbers(pane) == list(range(1, 201))
    lab.run(2)
    assert "198, 199, 200" in lab.save().cells[2].outputs[0]["data"]["text/plain"]


def numbers(pane: Locator) -> list[int]:
    """The numbers that an answer has counted."""
    return [int(number) for number in re.findall(r"\d+", pane.locator(".famnb-text").inner_text())]


def test_a_fast_stream_costs_the_page_few_messages(lab: Lab):
    patches: list[str | bytes] = []

    def note(frame: str | bytes) -> None:
        if b'"patch"' in (frame.encode() if isinstance(frame, str) else frame):
            patches.append(frame)

    lab.on("websocket", lambda socket: socket.on("framereceived", note))
    fast = "fast = famnb.serve(time_scale=0.05)\nclient = famnb.Client(base_url=fast.url, api_key=fast.key)"
    lab.notebook(CONNECT, fast, COMPOSE, "len(composer.reply.events)")
    for number in (0, 1, 2):
        lab.run(number)
    composer = lab.output(2).locator(".famnb.famnb-composer")
    composer.get_by_label("max_tokens", exact=True).fill("8000")
    ask(composer, "Count to 900.")
    expect(composer.locator(".famnb-figures")).to_contain_text("tokens out")
    counted = " ".join(composer.locator(".famnb-text").inner_text().split())
    assert ", ".join(str(number) for number in range(1, 901)) in counted
    lab.run(3)
    assert len(patches) > 2
    assert int(lab.output(3).inner_text().split()[-1]) > 3 * len(patches)


def test_keys_do_what_the_buttons_do_and_the_theme_is_followed(lab: Lab):
    lab.notebook(CONNECT, COMPOSE)
    lab.run(0)
    lab.run(1)
    composer = lab.output(1).locator(".famnb.famnb-composer")
    composer.get_by_label("Endpoint").focus()
    reached = []
    while "More" not in reached and len(reached) < 20:
        lab.page.keyboard.press("Tab")
        reached.append(lab.page.evaluate(FOCUSED))
    assert reached == [
        *("model", "max_tokens", "Sampling"),
        *("temperature", "top_p"),
        *("Reasoning", "Conversation", "Stream1 set", "More"),
    ]
    ask_endlessly(composer)
    lab.page.keyboard.press("Escape")
    expect(composer).to_contain_text("stopped")
    lab.change_theme("JupyterLab Dark")
    for part in (".famnb-writer .famnb-prompt", ".famnb-title", ".famnb-frozen p"):
        colour = composer.locator(part).first.evaluate("each => getComputedStyle(each).color")
        assert min(int(number) for number in colour.removeprefix("rgb(").removesuffix(")").split(",")[:3]) > 180, part
