"""The errors that famnb raises, as one tree, so that an `except` can be as wide or as narrow as needed.

FamnbError
├── InvalidRequest              refused before sending: a field or an argument is wrong (also a ValueError)
│   ├── InvalidArgument         an argument of a wrong type (also a TypeError)
│   └── UnknownName             an unknown call, column, pane or attribute (also a KeyError)
├── CredentialError             refused before sending: the key is unset or malformed (also a ValueError)
├── APIStatusError              the service answered with an error status
│   ├── BadRequestError         400
│   ├── AuthenticationError     401
│   ├── PermissionDeniedError   403
│   ├── NotFoundError           404
│   ├── RequestTooLargeError    413
│   ├── UnprocessableEntityError 422
│   ├── RateLimitError          429, carries `retry_after`
│   └── ServerError             5xx
├── ConnectError                no connection, or it broke before the response began
├── DeadlineError               a deadline of ours passed
│   ├── PoolTimeout             no free connection in time
│   ├── FirstEventTimeout       accepted, but the first event did not come in time
│   ├── IdleTimeout             the stream fell silent
│   └── TotalTimeout            the whole call took too long
├── StreamInterrupted           the stream ended without evidence that the reply is complete
│   ├── ProcessEnded            this process ended while the call ran
│   └── WorkerLost              the worker of a cluster that carried the call is gone
├── StreamError                 the service reported a failure inside an open stream
├── StreamDecodeError           an event of the stream is not JSON
├── ResponseFormatError         a 200 whose body is not a reply
├── ParseError                  the reply is not an instance of the schema that was asked for
├── Cancelled                   stopped by the caller
├── NotRecorded                 a call that may only be replayed was never recorded
├── LedgerError                 the ledger file cannot be used
└── BudgetExceeded              the next call could pass the spending limit

KeyboardInterrupt
└── Interrupted                 Ctrl-C or the kernel's interrupt, after what had arrived was kept

In IPython they show the caller's own line and the message; after `%xmode Verbose`, `%tb` shows the whole traceback.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from famnb.formatting import escape_controls

if TYPE_CHECKING:
    from famnb.reply import Reply

_MAX_LINES = 5
"""Lines of a message that IPython shows; a service may send a page."""
_LIBRARIES = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parent, *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
)
"""Folders of code that is not the caller's: this package, the standard library, what is installed."""


class FamnbError(Exception):
    """The base class of all errors of famnb; its text shows control characters, which a server may send, as escapes."""

    reply: Reply | None = None
    """What had arrived, already recorded; None when nothing was sent."""
    is_shown: bool = False
    """Whether the live view of the cell shows the message already."""

    def __str__(self) -> str:
        # Not where a message is made: `args` and the ledger keep a server's words as they came.
        return escape_controls(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython (8 and 9) shows instead of a traceback: the caller's own and the message."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        if shell is not None and shell.InteractiveTB.mode == "Verbose":
            full: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__, 1)
            return full
        message = "shown above" if self.is_shown else str(self)
        # Only once: `%tb`, or another cell that raises it again, shows the message.
        self.is_shown = False
        lines = [*message.splitlines(), *getattr(self, "__notes__", ())] or [""]
        if len(lines) > _MAX_LINES:
            lines[_MAX_LINES - 1 :] = [f"… and {len(lines) - _MAX_LINES + 1} more lines in str(error)"]
        return [*_render_own_line(self, shell), f"{type(self).__name__}: {lines[0]}", *lines[1:]]


# The next two are ValueErrors as well, since the caller passed a wrong value, as any Python function would say it.
class InvalidRequest(FamnbError, ValueError):
    """A request was refused before sending; the message names the field, what was expected and what to do."""


class InvalidArgument(InvalidRequest, TypeError):
    """A function was called with a value of a wrong type."""


class UnknownName(InvalidRequest, KeyError, AttributeError):
    """There is no call, column, pane or attribute of `famnb` of that name; the message says what there is."""

    # KeyError's own would put quotation marks around the message.
    __str__ = Exception.__str__


class CredentialError(FamnbError, ValueError):
    """The API key is unset or malformed; the message never shows it."""


class APIStatusError(FamnbError):
    """The service answered with an error status; the fields are those of the error body, None where it has none."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        limits: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds the service asked to wait; None when it did not say."""
        self.limits = dict(limits or {})
        """What the response's headers say of the service's limits, such as `remaining-requests`, by name."""
        self.body = body
        """The decoded error body, or its text when it is not JSON."""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.status}: {message}" if self.status else message


class BadRequestError(APIStatusError):
    """400: the request was understood as invalid."""


class AuthenticationError(APIStatusError):
    """401: the key is missing or wrong."""

    key_variable: str | None = None
    """The environment variable from which the client takes its key; None where that is not known."""


class PermissionDeniedError(APIStatusError):
    """403: the key is valid, but may not do this."""


class NotFoundError(APIStatusError):
    """404: no such path or object."""


class RequestTooLargeError(APIStatusError):
    """413: the request has more bytes than the service takes."""


class UnprocessableEntityError(APIStatusError):
    """422: the request was read, and a field of it is wrong."""


class RateLimitError(APIStatusError):
    """429: too many requests; `retry_after` says when to come back."""


class ServerError(APIStatusError):
    """5xx: the service failed."""


def status_error(status: int) -> type[APIStatusError]:
    """Return the error class for an HTTP status: APIStatusError itself for a status without a class of its own."""
    return _STATUS_ERRORS.get(status, ServerError if status >= 500 else APIStatusError)


_STATUS_ERRORS: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    413: RequestTooLargeError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


class ConnectError(FamnbError):
    """No connection could be made, or it broke before the response began."""


class DeadlineError(FamnbError, TimeoutError):
    """A deadline of the client passed."""

    def __init__(self, message: str, *, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
        """The deadline that passed."""


class PoolTimeout(DeadlineError):
    """No free connection in time."""


class FirstEventTimeout(DeadlineError):
    """The request was accepted, but the first event did not come in time."""


class IdleTimeout(DeadlineError):
    """The stream fell silent."""


class TotalTimeout(DeadlineError):
    """The whole call took too long."""


class StreamInterrupted(FamnbError):
    """The stream ended without a finish reason, a stop reason or a terminal event."""


class ProcessEnded(StreamInterrupted):
    """The process that made the call ended before the reply was complete."""


class WorkerLost(StreamInterrupted):
    """The cluster worker that made the call is gone; the service may have answered, and may bill the call."""


class StreamError(FamnbError):
    """The service reported a failure inside an open stream."""

    def __init__(self, message: str, *, type: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.type = type
        self.code = code


class StreamDecodeError(FamnbError):
    """An event of the stream is not JSON."""


class ResponseFormatError(FamnbError):
    """A response with a success status whose body is not a reply; the message shows at most 200 characters of it."""


class ParseError(FamnbError):
    """A complete call whose answer is not an instance of the schema; `reply` is the recorded reply."""

    def __init__(self, fault: str, *, reason: Literal["incomplete", "refused", "invalid"], partial: Any) -> None:
        super().__init__(f"{fault} (`error.partial` and `error.reply` have what came)")
        self.fault = fault
        """What is wrong with the answer."""
        self.reason = reason
        """`incomplete`: cut short; `refused`: the model declined; `invalid`: not JSON, or not valid by the schema."""
        self.partial = partial
        """The JSON value as far as it came, unchecked; None if there is none."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is rebuilt from its message alone, which fails for the required keyword arguments; a
        # pool of processes hangs on an error that it cannot unpickle.
        rebuild = functools.partial(type(self), self.fault, reason=self.reason, partial=self.partial)
        return rebuild, (), self.__dict__


class Cancelled(FamnbError):
    """The call was stopped by the caller; `reply` holds what had arrived."""


class NotRecorded(FamnbError):
    """The client answers from its ledger only, which has no complete call with this request; nothing was sent."""


class LedgerError(FamnbError):
    """The ledger file cannot be opened or read; the message says which file and what to do."""


class BudgetExceeded(FamnbError):
    """The next call could pass the spending limit, so it was not sent."""


# Not a FamnbError: `except Exception` in a loop over calls must not swallow the interrupt.
class Interrupted(KeyboardInterrupt):
    """The kernel was interrupted during a call: the stream is stopped, `reply` and the ledger keep what had arrived."""

    reply: Reply | None = None

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"Stopped. {self}"]


def _render_own_line(error: BaseException, shell: Any) -> list[str]:
    """Return where in the caller's own code an error came up, and that line; nothing if none of it was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_LIBRARIES)]
    if not frames:
        return []
    # The innermost: a function of the caller's that another library has called is where the mistake is.
    filename, number = frames[-1].filename, frames[-1].lineno or 0
    # Of a notebook's cell this is ("Cell", "In[3]"), of a file None.
    name = shell and shell.compile.format_code_name(filename)
    location = " ".join(name) if name else f"File {filename}"
    return [f"{location}, line {number}", f"----> {number} {linecache.getline(filename, number).strip()}", ""]
