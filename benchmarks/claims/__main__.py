"""The paper's claims and what the published runs say of them.

python -m benchmarks.claims               # print the page
python -m benchmarks.claims --write       # write docs/results/claims.md, and tables of other pages
python -m benchmarks.claims --measure     # measure published policies that are new, first
"""

import argparse
import sys

from benchmarks.claims import evidence, measure, pages, table

from moie.files import write_bytes

PAGE = evidence.RESULTS / "claims.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write {PAGE.name}, and tables of other pages"
    )
    parser.add_argument("--measure", action="store_true", help="measure policies that are new")
    given = parser.parse_args()
    if given.measure:
        measure.measure_all()
    found = evidence.read()
    page = table.markdown(found)
    if not given.write:
        sys.stdout.write(page.decode())
        return
    write_bytes(PAGE, page)
    for path, updated in pages.PAGES.items():
        write_bytes(path, updated(path.read_text(), found).encode())


if __name__ == "__main__":
    main()
