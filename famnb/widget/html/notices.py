"""Short messages under a widget's controls, as HTML: faults of the input, failures, remarks, and what was done."""

from __future__ import annotations

from famnb.errors import FamnbError
from famnb.widget.html.sanitize import SafeHtml

# role="alert" has a screen reader say a message at once, role="status" once it has finished its sentence.
_FAULT = SafeHtml('<p class="famnb-fault" role="alert">{}</p>')
_FAILURE = SafeHtml('<p class="famnb-failure" role="alert">{}</p>')
_REMARK = SafeHtml('<p class="famnb-remark">{}</p>')
_STATUS = SafeHtml('<p class="famnb-help" role="status">{}</p>')
_HELP = SafeHtml('<span class="famnb-help">{}</span>')


def fault(*messages: str) -> SafeHtml:
    """Return what is wrong with the reader's input, a paragraph each."""
    return _paragraphs(_FAULT, messages)


def failure(error: Exception) -> SafeHtml:
    """Return what went wrong in a callback."""
    return _FAILURE.format(error_text(error))


def error_text(error: Exception) -> str:
    """Return the message of an error, after its class unless it is an error of famnb."""
    # A message of famnb says what was wrong and what to do; that of another library may be as short as a key.
    return str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"


def remark(*messages: str) -> SafeHtml:
    """Return what a reader should know, a paragraph each."""
    return _paragraphs(_REMARK, messages)


def status(*messages: str) -> SafeHtml:
    """Return what was done, a paragraph each."""
    return _paragraphs(_STATUS, messages)


def help_text(text: str) -> SafeHtml:
    """Return what a control or a panel is for."""
    return _HELP.format(text)


def _paragraphs(template: SafeHtml, messages: tuple[str, ...]) -> SafeHtml:
    return SafeHtml().join(template.format(message) for message in messages)
