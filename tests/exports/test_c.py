"""Exports to C as a firmware has them: strict compilers, MISRA C, several policies in one image."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.environments.catalogue import TASKS
from moie.exports.naming import identifier
from moie.policy.base import Policy
from tests import tiny
from tests.exports.states import linear, network
from tests.exports.targets import STRICT, tool

PRECISIONS = pytest.mark.parametrize("precision", ["float", "double"])
KINDS = pytest.mark.parametrize(
    "policy",
    [tiny.policy("pendulum"), network(hidden=(5, 4), features=3), linear()],
    ids=["experts", "network", "linear"],
)
POSIX = (
    "arpa/inet ctype dirent dlfcn errno fcntl fenv float glob inttypes limits locale math net/if "
    "netdb poll pthread regex sched search semaphore setjmp signal spawn stdio stdlib string "
    "strings sys/mman sys/select sys/socket sys/stat sys/time sys/uio sys/wait syslog termios time "
    "unistd utime wchar wctype wordexp"
)
"""Headers of POSIX."""
DEVIATIONS = {"8.9": r".*\.c", "5.9": r".*\.c", "2.5": r".*\.h", "21.6": r"main\.c"}
"""Rules of MISRA C:2012 that exports do not follow, and the files: as docs/export.md says."""
BOTH = """
#include "left.h"
#include "right_leg.h"
#include <stddef.h>
#include <stdio.h>

int main(void)
{
    const LEFT observation[LEFT_FEATURES] = {0.5, -0.25, 0.125};
    LEFT action[LEFT_ACTIONS];
    const RIGHT other[RIGHT_LEG_FEATURES] = {0.5, -0.25, 0.125};
    RIGHT other_action[RIGHT_LEG_ACTIONS];

    if (left_act(observation, action, NULL) != LEFT_STATUS_OK
        || right_leg_act(other, other_action) != RIGHT_LEG_STATUS_OK) {
        return 1;
    }
    printf("%d %.9g %.9g\\n", left_self_test(NULL) + right_leg_self_test(NULL),
           (double)action[0], (double)other_action[0]);
    printf("%s %s %d\\n", LEFT_POLICY_SHA256, RIGHT_LEG_POLICY_SHA256, LEFT_FORMAT_VERSION);
    return 0;
}
"""


def with_range(policy: Policy) -> dict[str, Any]:
    """The option that gives a range to one feature."""
    return {"feature_ranges": {policy.feature_names[2]: (-3.0, 4.0)}}


def it(policy: Policy, precision: Any, place: Path) -> Path:
    """An export named `it`, with a range."""
    options = with_range(policy)
    return moie.export(policy, "c", out=place / "out", precision=precision, name="it", **options)


def compiled(words: list[str], place: Path) -> None:
    """Compile there, without any warning."""
    done = subprocess.run(words, cwd=place, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def sources(place: Path) -> list[str]:
    """The C files there."""
    return sorted(file.name for file in place.glob("*.c"))


def optional(name: str) -> str:
    """A program without which the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: 'apt-get install {name}'")
    return found


# --- two policies in one image -------------------------------------------------------------------


@pytest.mark.parametrize(("left", "right"), [("float", "double"), ("double", "float")])
def test_two_policies_live_in_one_program(left: Any, right: Any, tmp_path: Path) -> None:
    one, two = tiny.policy("pendulum"), network(hidden=(5,), features=3, actions=1)
    folders = [
        moie.export(one, "c", out=tmp_path / "a", precision=left, name="left"),
        moie.export(two, "c", out=tmp_path / "b", precision=right, name="right_leg"),
    ]
    place = tmp_path / "both"
    place.mkdir()
    for folder in folders:
        for file in folder.glob("*.[ch]"):
            shutil.copy(file, place)
    text = BOTH.replace("const LEFT ", f"const {left} ").replace("    LEFT ", f"    {left} ")
    text = text.replace("const RIGHT ", f"const {right} ").replace("    RIGHT ", f"    {right} ")
    (place / "main.c").write_text(text)
    compiled([tool("gcc"), *STRICT, *sources(place), "-o", "both", "-lm"], place)
    done = subprocess.run([place / "both"], capture_output=True, text=True, check=True)
    wrong, *actions = done.stdout.splitlines()[0].split()
    assert wrong == "0"
    state = np.array([0.5, -0.25, 0.125])
    meant = [policy.predict(state, deterministic=True)[0][0] for policy in (one, two)]
    np.testing.assert_allclose(np.array(actions, float), meant, atol=1e-5)
    first, second, form = done.stdout.splitlines()[1].split()
    assert form == "2"
    for digest, folder in zip((first, second), folders, strict=True):
        assert f'"policy": "{digest}"' in (folder / "export.json").read_text()
    assert first != second


def symbols(words: list[str], place: Path) -> set[str]:
    """What an object or a library defines for others."""
    found = subprocess.run(["nm", *words], cwd=place, capture_output=True, text=True, check=True)
    words_of = [line.split() for line in found.stdout.splitlines()]
    return {line[-1].split("@")[0] for line in words_of if line}


@KINDS
def test_all_that_is_seen_from_outside_starts_with_the_name(policy: Policy, tmp_path: Path) -> None:
    out = moie.export(policy, "c", out=tmp_path / "out", name="Arm2")
    compiled([tool("gcc"), *STRICT, "-c", "Arm2.c", "Arm2_test.c"], out)
    found = symbols(["-g", "--defined-only", "Arm2.o", "Arm2_test.o"], out)
    assert {"Arm2_act", "Arm2_self_test"} == {one for one in found if not one.endswith(":")}
    macros = re.findall(r"#define (\w+)", (out / "Arm2.h").read_text())
    assert len(macros) == 7
    assert all(one.startswith("ARM2_") for one in macros)


def test_no_default_name_is_one_of_the_c_library(tmp_path: Path) -> None:
    tool("gcc")
    known = set()
    for name in ("libc.so.6", "libm.so.6"):
        words = ["gcc", f"-print-file-name={name}"]
        file = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        known |= symbols(["-D", "--defined-only", file], tmp_path)
    assert {"close", "exp"} <= known
    names = {identifier(task.id) for task in TASKS} | {"close", "read", "j0", "clock", "policy"}
    assert not known & {f"{name}_{end}" for name in names for end in ("act", "self_test")}


@PRECISIONS
@KINDS
def test_no_name_inside_is_one_of_posix(policy: Policy, precision: Any, tmp_path: Path) -> None:
    """A table was called `close` once."""
    out = moie.export(policy, "c", out=tmp_path / "out", precision=precision, **with_range(policy))
    included = [word for name in POSIX.split() for word in ("-include", f"{name}.h")]
    words = [tool("gcc"), *STRICT, "-D_GNU_SOURCE", *included]
    compiled([*words, "-c", *sources(out)], out)


# --- strict tools --------------------------------------------------------------------------------


@PRECISIONS
@KINDS
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_firmware_compilers_have_nothing_to_say(
    compiler: str, policy: Policy, precision: Any, tmp_path: Path
) -> None:
    """In single precision nothing is computed in double by accident."""
    found = tool(compiler) if compiler == "gcc" else optional(compiler)
    out = it(policy, precision, tmp_path)
    strict = [*STRICT, "-Wconversion", "-Wshadow", "-Wmissing-prototypes"]
    compiled([found, *strict, "-c", *sources(out)], out)
    if shutil.which("g++"):
        header = ["g++", "-fsyntax-only", "-x", "c++", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        compiled([*header, "-include", "it.h", "/dev/null"], out)


def test_fast_math_is_refused(tmp_path: Path) -> None:
    """It would leave out the search for numbers that are not finite."""
    out = moie.export(tiny.policy("pendulum"), "c", out=tmp_path / "out")
    words = [tool("gcc"), "-ffast-math", "-c", "pendulum.c"]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True)
    assert done.returncode != 0
    assert "compile without -ffast-math" in done.stderr


def misra(place: Path) -> list[tuple[str, str]]:
    """What cppcheck says of the C files there, as files and rules; no deviations of the page."""
    words = [optional("cppcheck"), "--std=c99", "--addon=misra", "--quiet"]
    words += ["--enable=style,warning,performance,portability", "--template={file} {id}"]
    done = subprocess.run([*words, *sources(place)], cwd=place, capture_output=True, text=True)
    found = re.findall(r"^(\S+) (\S+)$", done.stderr, re.MULTILINE)
    assert ("main.c", "misra-c2012-21.6") in found  # the addon was at work
    known = {f"misra-c2012-{rule}": files for rule, files in DEVIATIONS.items()}
    return [(file, rule) for file, rule in found if not re.fullmatch(known.get(rule, ""), file)]


@PRECISIONS
@KINDS
def test_misra_but_for_the_deviations_of_the_page(
    policy: Policy, precision: Any, tmp_path: Path
) -> None:
    assert misra(it(policy, precision, tmp_path)) == []


def test_misra_for_two_policies_in_one_image(tmp_path: Path) -> None:
    out = it(tiny.policy("pendulum"), "float", tmp_path)
    for kind, name in ((network(), "other"), (linear(), "third")):
        folder = moie.export(kind, "c", out=tmp_path / name, name=name)
        for file in folder.glob(f"{name}*.[ch]"):
            shutil.copy(file, out)
    assert misra(out) == []


def test_the_page_lists_the_deviations() -> None:
    page = (tiny.ROOT / "docs" / "export.md").read_text()
    rows = re.findall(r"^\| (\d+\.\d+) \|", page, re.MULTILINE)
    assert set(DEVIATIONS) == set(rows)


# --- the self-test -------------------------------------------------------------------------------


@PRECISIONS
@KINDS
def test_the_self_test_needs_no_library_and_finds_what_is_wrong(
    policy: Policy, precision: Any, tmp_path: Path
) -> None:
    out = it(policy, precision, tmp_path)
    compiled([tool("gcc"), *STRICT, "-c", "it_test.c"], out)
    assert symbols(["-u", "it_test.o"], out) == {"it_act"}
    text = (out / "it.c").read_text()
    changes = {
        "": "",
        "action[i] = safe_action[i];": "action[i] = high[i];",
        "STATUS_OUT_OF_RANGE;": "STATUS_OK;",
        "STATUS_NOT_FINITE;": "STATUS_OK;",
        "? low[i] : mean[i]": "? low[i] : -mean[i]",
    }
    (out / "run.c").write_text('#include "it.h"\nint main(void) { return it_self_test(0); }\n')
    for old, new in changes.items():
        assert old in text
        (out / "it.c").write_text(text.replace(old, new))
        compiled(["gcc", "-std=c99", "it.c", "it_test.c", "run.c", "-o", "run", "-lm"], out)
        wrong = subprocess.run([out / "run"], timeout=60).returncode
        assert (wrong > 0) == (old != ""), old
