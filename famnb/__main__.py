"""`python -m famnb`: the same as the `famnb` command."""

import sys

from famnb.cli import main

sys.exit(main())
