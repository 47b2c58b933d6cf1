"""Keeps a notebook from taking the arrow keys that are meant for a list of choices."""

from __future__ import annotations

import anywidget

CLASS = "famnb-keys"
"""The class of boxes whose lists keep their keys."""


class Keys(anywidget.AnyWidget):
    """Shows nothing; while it is on the page, lists in boxes of the class hear their own keys, and align."""

    _esm = f"""
    export default {{
      render() {{
        const keep = ({{ target }}) => {{
          if (target.matches?.(".{CLASS} select")) target.dataset.lmSuppressShortcuts = "true";
        }};
        document.addEventListener("focusin", keep);
        return () => document.removeEventListener("focusin", keep);
      }},
    }};
    """
    _css = f".{CLASS} select[size] {{ font: 12px var(--jp-code-font-family, monospace); }}"
