"""The saved report: one file that says everything, loads nothing, and in which nobody's text is markup."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

import famnb
from famnb.formatting import format_usd

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")
EVIL = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1)) ![](http://evil.test/a.png)"
)
SECTIONS = [
    "Plots",
    "Answers",
    "Plan and settings",
    "Failures",
    "Prices",
    "How to read it",
]


class Page(HTMLParser):
    """What a browser would see of a page: its elements with their attributes, its headings and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.text = ""
        self._heading = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._heading = tag == "h2"

    def handle_data(self, data):
        self.text += data
        if self._heading:
            self.headings.append(data)
            self._heading = False


def write_report(exp, path):
    """The page that an experiment's report is."""
    assert exp.report(path) == path
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def experiment(client):
    """An experiment of four cells on the service that does not wait."""

    def make(prompts=("Why is the sky blue?", "What is a median?"), **options):
        return famnb.Experiment(prompts, GRID, client=client, **{"name": "report", "max_tokens": 40, **options})

    return make


def test_a_report_says_what_was_asked_what_came_and_what_it_cost(experiment, tmp_path, prices):
    exp = experiment(system="Answer briefly.", warmup=1)
    exp.run(progress=False)
    page = write_report(exp, tmp_path / "report.html")
    assert page.headings == SECTIONS
    assert "6 of 6" in page.text
    assert "Simulated." in page.text
    assert "6 are the fewest that could (n = 2 pairs)" in page.text
    assert "2 prompts × 2 variants × 1 repeat, after 1 warm-up call of each variant: 6 calls" in page.text
    assert '"system": "Answer briefly."' in page.text
    assert f"Written by famnb {famnb.__version__}" in page.text
    assert f"answered by {urlsplit(exp.frame()['url'].iloc[0]).netloc}." in page.text
    assert page.text.count("Why is the sky blue?") >= 4
    alts = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert [alt.partition(" by ")[0].partition(":")[0] for alt in alts] == [
        "fam-2-5-mini against fam-2-5-pro (n=2 prompts)",
        "Time to the end of the answer against cost",
        "Time to the end of the answer",
        "Time to first token",
        "Cost",
    ]


@pytest.mark.full
def test_the_first_screen_says_who_wins_at_what_cost_and_how_sure_that_is(experiment, tmp_path, prices):
    exp = experiment([f"Question {number}" for number in range(8)], name="first screen")
    exp.run(progress=False)
    path = tmp_path / "report.html"
    options = {"primary": "cost_usd", "baseline": "fam-2-5-mini", "slo": {"e2e_s": 60}}
    exp.report(path, **options)
    text = Page(path.read_text(encoding="utf-8")).text
    first_screen, _, rest = text.partition("Figures of each variant")
    headline = exp.summary(**options).headline
    assert headline.startswith("Exploratory: fam-2-5-pro costs ≈ 4")
    assert headline in first_screen
    assert "cost (primary)" in first_screen
    assert "goodput" in rest
    with pytest.raises(famnb.InvalidRequest, match="primary: there is no 'score_x'"):
        exp.report(path, primary="score_x")


@pytest.mark.full
def test_a_cost_that_lacks_prices_says_how_many_are_missing(experiment, tmp_path, prices):
    famnb.prices.unset("fam-2-5-mini")
    exp = experiment()
    exp.run(progress=False)
    page = write_report(exp, tmp_path / "report.html")
    known = exp.frame()["cost_low_usd"].sum()
    assert f"≥ {format_usd(known)} (2 of 4 calls without a price)" in page.text


def test_a_report_of_hostile_text_loads_nothing_and_runs_nothing(client, tmp_path):
    variants = {EVIL: {"model": "fam-2-5-pro"}, "plain": {"model": "fam-2-5-mini"}}
    prompts = [{"id": EVIL, "prompt": EVIL}, {"id": f"{EVIL}2", "prompt": f"{EVIL} again"}]
    exp = famnb.Experiment(prompts, variants, name=EVIL, client=client, system=EVIL)
    exp.run(progress=False)
    page = write_report(exp, tmp_path / "report.html")
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "link", "iframe", "object", "embed", "base"})
    policies = [attributes.get("content") for tag, attributes in page.elements if attributes.get("http-equiv")]
    assert policies == [
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    ]
    pictures = [attributes for tag, attributes in page.elements if tag in ("img", "source")]
    assert pictures
    assert all((attributes.get("src") or attributes["srcset"]).startswith("data:image/png") for attributes in pictures)
    assert "url(" not in (tmp_path / "report.html").read_text()
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not (attributes.get("href") or "").startswith("javascript:")
    assert page.text.count("<script>alert(1)</script>") > 4


def test_failures_are_listed(connect, tmp_path):
    with famnb.serve(time_scale=0, fault="status=400") as refusing:
        exp = famnb.Experiment(["a", "b"], GRID, name="refused", client=connect(refusing), max_tokens=5)
        exp.run(progress=False)
        page = write_report(exp, tmp_path / "report.html")
    assert page.text.count("BadRequestError") >= 4
    assert "2 of 2 calls of fam-2-5-pro failed (BadRequestError 2)" in page.text
    assert "img" not in {tag for tag, _ in page.elements}


def test_an_experiment_that_has_not_run_has_a_report(experiment, tmp_path):
    page = write_report(experiment(), tmp_path / "new" / "report.html")
    assert "0 of 4" in page.text
    assert "not yet" in page.text
    assert "No price is known for fam-2-5-" in page.text
    assert "answered by nobody yet" in page.text


def test_a_report_replaces_the_file_or_leaves_it(experiment, tmp_path):
    path = tmp_path / "reports" / "report.html"
    path.parent.mkdir()
    path.write_text("old")
    experiment().report(path)
    assert path.read_text().startswith("<!doctype html>")
    (path.parent / "folder.html").mkdir()
    with pytest.raises(OSError):
        experiment().report(path.parent / "folder.html")
    assert sorted(file.name for file in path.parent.iterdir()) == ["folder.html", "report.html"]
