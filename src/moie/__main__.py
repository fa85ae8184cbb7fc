"""`python -m moie`."""

import sys

from moie.cli.main import main

sys.exit(main())
