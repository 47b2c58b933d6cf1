"""A saved report in a real browser: without network and without script, light, dark and on paper."""

import pytest
from playwright.sync_api import Browser

import famnb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def report(service, tmp_path_factory):
    """The report of a small experiment whose prompt is hostile."""
    folder = tmp_path_factory.mktemp("report")
    with famnb.Client(base_url=service.url, api_key=service.key, ledger=folder / "ledger.sqlite") as client:
        exp = famnb.Experiment(
            ["One", "Two <script>document.title = 'owned'</script><img src='http://127.0.0.1:9/x.png'>"],
            famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages"),
            name="Seen",
            client=client,
            max_tokens=60,
        )
        exp.run(progress=False)
        return exp.report(folder / "report.html")


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_a_report_fits_its_reader_and_asks_for_nothing(browser: Browser, report, scheme, dark):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 420, "height": 900})
    page = context.new_page()
    urls, messages = list[str](), list[str]()
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.goto(report.as_uri())
    assert page.title() == "Seen"
    assert [url for url in urls if not url.startswith("data:")] == [report.as_uri()]
    assert messages == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(17, 20, 24)" if dark else "rgb(255, 255, 255)")
    shown = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0 && i.currentSrc === i.src)")
    assert shown
    assert set(shown) == {not dark}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()


def test_no_table_is_cut_on_paper_or_on_the_screen(browser: Browser, service, tmp_path):
    with famnb.Client(base_url=service.url, api_key=service.key, ledger=tmp_path / "ledger.sqlite") as client:
        exp = famnb.Experiment(
            [f"Question {number}" for number in range(6)],
            {f"a_long_name_without_a_blank_{model}": {"model": model} for model in ("fam-2-5-pro", "fam-2-5-mini")},
            scorers=[famnb.scorers.regex("x", name=f"criterion_{number}") for number in range(9)],
            name="Wide",
            client=client,
            max_tokens=30,
        )
        exp.run(progress=False)
        wide = exp.report(tmp_path / "report.html", slo={"e2e_s": 5})
    context = browser.new_context(viewport={"width": 688, "height": 1000})
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto(wide.as_uri())
    ends = page.evaluate("[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right)")
    assert len(ends) > 4
    assert max(ends) <= 688
    page.emulate_media(media="screen")
    for width in (1280, 800):
        page.set_viewport_size({"width": width, "height": 900})
        cut = page.evaluate(
            "[...document.querySelectorAll('div:has(> table)')].filter(e => e.scrollWidth > e.clientWidth).length"
        )
        assert (width, cut) == (width, 0)
    context.close()


def test_what_is_folded_is_on_paper(browser: Browser, report):
    context = browser.new_context(viewport={"width": 688, "height": 1000})
    page = context.new_page()
    page.goto(report.as_uri())
    heights = "[...document.querySelectorAll('details:not([open])')].map(d => d.getBoundingClientRect().height)"
    folded = page.evaluate(heights)
    page.emulate_media(media="print")
    assert all(after > before + 20 for before, after in zip(folded, page.evaluate(heights), strict=True))
    assert len(folded) >= 2
    context.close()
