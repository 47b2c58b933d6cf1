"""A tool's front end on a bare page, given only what the widget contract promises, beside its tool in Python."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

from playwright.sync_api import Locator, Page

import famnb
from famnb.widget.form_tool import FormTool
from famnb.widget.runtime.front_end import FRONT, read_style
from famnb.widget.runtime.tool import BaseTool, Flusher
from tests.support.scripted_stream import ScriptedStream
from tests.support.waiting import wait_until

POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-test'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src data:"
)
"""No eval, no inline script, no address but the page's own; thumbnails of a user's images are data."""
START = """async ([source, blocking]) => {
  const listeners = {};
  const traits = { blocking, kernel_id: "k" };
  window.sent = [];
  window.faults = [];
  window.addEventListener("error", event => window.faults.push(event.message));
  window.addEventListener("unhandledrejection", event => window.faults.push(String(event.reason)));
  document.addEventListener("securitypolicyviolation", event => window.faults.push(event.violatedDirective));
  const model = {
    get: name => traits[name],
    set: () => {},
    save_changes: () => {},
    on: (name, listener) => { listeners[name] = listener; },
    off: () => {},
    send: message => {
      if (window.isShutDown) throw new Error("Kernel is dead");
      window.sent.push(message);
    },
  };
  window.notifyListeners = (name, ...details) => listeners[name](...details);
  const front = (await import(source)).default();
  front.initialize({ model });
  window.draw = (name) => front.render({ model, el: document.querySelector(name) });
  window.end = window.draw("main");
}"""

DELIVER = """([message, buffers]) => {
  const parts = buffers.map(part => new DataView(Uint8Array.from(atob(part), letter => letter.charCodeAt(0)).buffer));
  window.notifyListeners("msg:custom", message, parts);
}"""

HAS_CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
  value: { writeText: async text => { window.copied = text; } },
})"""


class IdleFlusher(Flusher):
    """Leaves the flushes to the test."""

    def add(self, tool: object) -> None:
        pass


class Bridge:
    """A tool in Python and its front end on a page; messages cross when the test says so."""

    def __init__(self, page: Page, tool: BaseTool) -> None:
        self.page = page
        self.tool = tool
        self.sent: list[tuple[dict[str, Any], list[str]]] = []

        def send(message: dict[str, Any], buffers: list[bytes] | None = None) -> None:
            self.sent.append((message, [base64.b64encode(part).decode() for part in buffers or ()]))

        tool.send = send

    def deliver(self) -> None:
        """Bring the page's messages to the tool and the tool's to the page, until there are no more."""
        while (messages := self.page.evaluate("window.sent.splice(0)")) or self.sent:
            for message in messages:
                self.tool.receive(message)
            # One at a time, since the flusher's thread may add to them.
            while self.sent:
                self.page.evaluate(DELIVER, self.sent.pop(0))

    def flush(self) -> None:
        self.tool.flush()
        self.deliver()

    def deliver_until(self, condition: Callable[[], object]) -> None:
        """Bring messages across, those of other threads too, until something is true."""

        def check() -> object:
            self.deliver()
            return condition()

        wait_until(check)

    def deliver_all(self) -> None:
        """Bring messages across until the tool has nothing more to send."""

        def is_done() -> bool:
            with self.tool.lock:  # which a flush holds until it has sent
                return not self.tool.needs_flush and not self.sent

        self.deliver_until(is_done)


class FormBridge(Bridge):
    """A tool with a form whose answers are written by the test."""

    def __init__(self, page: Page, module: str, make: Callable[[famnb.Client], FormTool]) -> None:
        self.client = famnb.Client(base_url="http://127.0.0.1:9", api_key="unused")
        self.streams: list[ScriptedStream] = []

        def start(request: Any, labels: object) -> ScriptedStream:
            self.streams.append(ScriptedStream())
            self.streams[-1].exchange.request = request
            return self.streams[-1]

        self.client.engine.start = start
        super().__init__(page, make(self.client))
        page.evaluate(START, [module, False])
        self.deliver()
        self.prompt = page.get_by_label("Prompt", exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def pause(self) -> None:
        """Stop typing for a moment."""
        self.page.clock.fast_forward(250)
        self.deliver()

    def send(self, prompt: str) -> None:
        """Write a prompt and send it by Enter."""
        self.prompt.fill(prompt)
        self.prompt.press("Enter")
        self.deliver()


def serve_front(page: Page) -> Iterator[Page]:
    """Have a page stand beside the modules, with a clock of its own."""

    def serve(route: Any) -> None:
        name = route.request.url.removeprefix("http://front.test/")
        if "api" in name:
            route.fulfill(status=204)
        elif name.endswith(".js"):
            route.fulfill(body=(FRONT / name).read_text(), content_type="text/javascript")
        else:
            body = f"<!doctype html><style>{read_style()}</style><main></main>"
            route.fulfill(body=body, content_type="text/html", headers={"content-security-policy": POLICY})

    page.clock.install()
    page.route("**/*", serve)
    page.goto("http://front.test/")
    yield page
    assert page.evaluate("window.faults ?? []") == []
