"""`python -m apply_server` is the command line."""

import sys

from apply_server.cli import main

sys.exit(main())
