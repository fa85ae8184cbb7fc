"""What exports say of an observation, what they command if it is not to be used, who decides."""

import ctypes
import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.exports.guard import NOT_FINITE, OK, OUT_OF_RANGE
from moie.policy.base import Array, Policy
from moie.policy.mixture import Mixture
from tests import tiny
from tests.exports.states import MIXTURE, linear, network, states
from tests.exports.targets import library, tool

Said = tuple[int, Array, Any]
"""A status, an action, and what a monitor is told: memberships, default share, leader."""
Acting = Callable[[Array], list[Said]]
SAFE = [-0.3, 0.7]
SCRIPT = """
import fs from "node:fs";
const it = await import("./it.mjs");
const numbers = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };
const rows = JSON.parse(fs.readFileSync(0)).map((row) => row.map((x) => numbers[x] ?? x));
const said = rows.map((row) => {
  const found = it.monitor ? it.monitor(row) : null;
  return [it.status(row), it.act(row), found && Object.values(found)];
});
console.log(JSON.stringify(said));
"""


def two_actions(**changes: Any) -> Mixture:
    """A mixture of three experts with two actions."""
    rng = np.random.default_rng(1)
    known: dict[str, Any] = {
        "feature_names": ("a", "b", "c"),
        "action_names": ("left", "right"),
        "actions": rng.uniform(-1, 1, (3, 2)),
        "default_action": np.array([0.1, -5.0]),
        "log_std": np.zeros(2),
        "action_low": np.array([-1.0, -0.4]),
        "action_high": np.array([1.0, 0.9]),
        "action_shape": (2,),
    }
    return tiny.policy("pendulum", **(known | changes))


def in_c(precision: Any) -> Callable[..., Acting]:
    """Exports to C of this precision."""
    kind, real = {
        "float": (ctypes.c_float, np.float32),
        "double": (ctypes.c_double, np.float64),
    }[precision]

    def acting(policy: Policy, place: Path, **options: Any) -> Acting:
        folder = moie.export(policy, "c", out=place, precision=precision, name="it", **options)
        act, has_monitor = library(folder, "it").it_act, isinstance(policy, Mixture)
        n = policy.n_experts if isinstance(policy, Mixture) else 0

        class Monitor(ctypes.Structure):
            _fields_ = (
                ("memberships", kind * n),
                ("default_share", kind),
                ("leader", ctypes.c_int),
            )

        def one(row: Array) -> Said:
            given, found = row.astype(real), np.full(len(policy.action_names), 9, real)
            monitor = Monitor()
            rest = [ctypes.byref(monitor)] if has_monitor else []
            status = act(
                ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(found.ctypes.data), *rest
            )
            told = [list(monitor.memberships), monitor.default_share, monitor.leader]
            return status, found.astype(np.float64), told if has_monitor else None

        return lambda rows: [one(row) for row in rows]

    return acting


def in_python(policy: Policy, place: Path, **options: Any) -> Acting:
    """Exports to Python."""
    file = moie.export(policy, "python", out=place, name="it", **options) / "it.py"
    spec = importlib.util.spec_from_file_location("it", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monitor = getattr(module, "monitor", lambda row: None)
    return lambda rows: [
        (module.status(row), np.array(module.act(row)), monitor(row)) for row in rows.tolist()
    ]


def in_javascript(policy: Policy, place: Path, **options: Any) -> Acting:
    """Exports to JavaScript."""
    node = tool("node")
    folder = moie.export(policy, "javascript", out=place, name="it", **options)
    (folder / "run.mjs").write_text(SCRIPT)

    def acting(rows: Array) -> list[Said]:
        listed = [[x if np.isfinite(x) else _word(x) for x in row] for row in rows.tolist()]
        done = subprocess.run(
            [node, str(folder / "run.mjs")],
            input=json.dumps(listed),
            capture_output=True,
            text=True,
            check=True,
        )
        return [(status, np.array(act), told) for status, act, told in json.loads(done.stdout)]

    return acting


def _word(value: float) -> str:
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


LANGUAGES = pytest.mark.parametrize(
    "language",
    [in_c("float"), in_c("double"), in_python, in_javascript],
    ids=["C, float", "C, double", "Python", "JavaScript"],
)


# --- status and safe action ----------------------------------------------------------------------


@LANGUAGES
def test_each_status_and_the_safe_action(language: Any, tmp_path: Path) -> None:
    ranges = {"b": (-2.0, 3.0), "c": (0.25, 1e9)}
    acting = language(two_actions(), tmp_path / "out", safe_action=SAFE, feature_ranges=ranges)
    cases = [
        (OK, [0, 0, 0.5]),
        (OK, [1e9, -2, 0.25]),
        (OK, [-1e9, 3, 1e9]),
        (OUT_OF_RANGE, [0, -2.000001, 0.5]),
        (OUT_OF_RANGE, [0, 3.000001, 0.5]),
        (OUT_OF_RANGE, [0, 0, 0.2499999]),
        (OUT_OF_RANGE, [0, 0, -0.0]),
        (OUT_OF_RANGE, [0, 1e20, -1e20]),
    ]
    for bad in (np.nan, np.inf, -np.inf):
        cases += [(NOT_FINITE, [*[0] * i, bad, *[0.5] * (2 - i)]) for i in range(3)]
        cases += [(NOT_FINITE, [bad, 100, 0.5]), (NOT_FINITE, [0, 100, bad])]
    for (status, row), said in zip(
        cases, acting(np.array([row for _, row in cases], float)), strict=True
    ):
        assert said[0] == status, row
        safe = np.array(SAFE)
        commanded = [safe, safe.astype(np.float32).astype(np.float64)]
        is_safe = any((said[1] == one).all() for one in commanded)
        assert is_safe == (status != OK), row
        assert (said[2][2] == -1) == (status != OK), row
        if status != OK:
            assert list(said[2][0]) == [0, 0, 0]
            assert said[2][1] == 0


@LANGUAGES
def test_the_default_is_the_default_action_in_range_and_no_range(
    language: Any, tmp_path: Path
) -> None:
    policy = two_actions()
    acting = language(policy, tmp_path / "out")
    rows = np.array([[np.nan, 0, 0], [1e30, -1e30, 1e30]])
    first, second = acting(rows)
    assert first[0] == NOT_FINITE
    low, _ = policy.bounds
    np.testing.assert_allclose(first[1], [0.1, low[1]], rtol=1e-7)
    assert first[1][1] == low[1]  # not below the action range
    assert second[0] == OK


@LANGUAGES
@pytest.mark.parametrize("policy", [network(hidden=(4,), features=3), linear()])
def test_other_kinds_have_a_guard_too(policy: Policy, language: Any, tmp_path: Path) -> None:
    name = policy.feature_names[1]
    safe = np.full(len(policy.action_names), 0.25)
    options = {"safe_action": safe, "feature_ranges": {name: (-1, 1)}}
    found = language(policy, tmp_path / "out", **options)(np.array([[0, 2.0, 0], [0, np.inf, 0]]))
    assert [said[0] for said in found] == [OUT_OF_RANGE, NOT_FINITE]
    assert all((said[1] == 0.25).all() and said[2] is None for said in found)


@pytest.mark.parametrize("language", [in_c("double"), in_python, in_javascript])
def test_what_predict_refuses_is_out_of_range(language: Any, tmp_path: Path) -> None:
    rows = np.array([[0, 1e60, 0], [0, -1.1e60, 0]])
    assert [one[0] for one in language(two_actions(), tmp_path / "out")(rows)] == [OK, OUT_OF_RANGE]


@pytest.mark.parametrize("to", ["c", "python", "javascript"])
def test_an_export_with_a_guard_can_be_checked(to: Any, tmp_path: Path) -> None:
    tool({"c": "gcc", "javascript": "node"}.get(to, "gcc"))
    ranges = {"a": (-0.1, 0.3), "b": (-1e-30, 1e-30), "c": (5.0, 1e50)}
    out = moie.export(
        two_actions(), to, out=tmp_path / "out", safe_action=SAFE, feature_ranges=ranges
    )
    assert "43 test vectors agree" in moie.check_export(out)
    facts = json.loads((out / "export.json").read_bytes())
    assert facts["safe_action"] == SAFE
    assert facts["feature_ranges"] == {name: list(limits) for name, limits in ranges.items()}


# --- the monitor ---------------------------------------------------------------------------------


@LANGUAGES
@pytest.mark.parametrize("policy", [two_actions(), moie.load(MIXTURE), moie.load("zoo:hopper")])
def test_a_monitor_is_told_what_explain_says(policy: Any, language: Any, tmp_path: Path) -> None:
    rows = states(policy, 200).astype(np.float32).astype(np.float64)
    leaders = set()
    for row, (status, _, told) in zip(rows, language(policy, tmp_path / "out")(rows), strict=True):
        memberships, default_share, leader = told
        explained = policy.explain(row)
        shares = np.zeros(policy.n_experts + 1)
        shares[list(explained.experts)] = explained.memberships
        shares[-1] = explained.default_share
        np.testing.assert_allclose([*memberships, default_share], shares, atol=2e-6)
        assert status == OK
        assert shares[leader] >= shares.max() - 4e-6
        leaders.add(leader)
    assert len(leaders) > 1
    assert policy.n_experts in leaders
