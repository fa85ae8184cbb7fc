"""`python -m moie`."""

import sys

from moie.cli import main

sys.exit(main())
