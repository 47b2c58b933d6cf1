"""The service as a child process: options as one JSON argument, keys in the environment."""

from __future__ import annotations

import os
import sys

import msgspec

from famnb.errors import FamnbError
from famnb.service.process import KEY_VARIABLE
from famnb.service.server import run


def main() -> int:
    """Run until standard input ends; an error is one line on standard error."""
    # Removed, so that nothing this process starts inherits them.
    keys = os.environ.pop(KEY_VARIABLE, "").split() or None
    try:
        return run(until_eof=True, key=keys, **msgspec.json.decode(sys.argv[1]))
    except FamnbError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the parent reads it
        return 1


if __name__ == "__main__":
    sys.exit(main())
