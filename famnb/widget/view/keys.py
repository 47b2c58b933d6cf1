"""Keeps a notebook from taking the keys that are meant for a list of choices or a button."""

from __future__ import annotations

import anywidget

CLASS = "famnb-keys"
"""The class of boxes whose lists, buttons and boxes to tick keep their keys."""


class Keys(anywidget.AnyWidget):
    """Shows nothing; while it is on the page, controls in boxes of the class hear their own keys, and lists align.

    A button that opens something says whether it is open.
    """

    _esm = f"""
    export default {{
      render() {{
        const keys = ".{CLASS} :is(select, button, input[type=checkbox])";
        const keep = ({{ target }}) => {{
          if (!target.matches?.(keys)) return;
          target.dataset.lmSuppressShortcuts = "true";
          if (target.matches(".widget-toggle-button")) {{
            target.setAttribute("aria-expanded", target.classList.contains("mod-active"));
          }}
        }};
        const later = (event) => requestAnimationFrame(() => keep(event));
        document.addEventListener("focusin", keep);
        document.addEventListener("click", later);
        return () => {{
          document.removeEventListener("focusin", keep);
          document.removeEventListener("click", later);
        }};
      }},
    }};
    """
    # The arrow of an ipywidgets list is black, also on a dark page; the browser's own is not.
    _css = f"""
    .{CLASS} select[size] {{ font: 12px var(--jp-code-font-family, monospace); }}
    .{CLASS} select:not([size]) {{ appearance: auto; background-image: none; }}
    """
