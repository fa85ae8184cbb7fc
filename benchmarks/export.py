"""How large a policy is and how long a step takes, as Kohler et al. state it for readable policies
(arXiv:2503.08322): the bytes of the unfolded program, which is plain Python without loops and
tables, and the time of one step of it. Beside it the exports to Python and to C, and `predict`.

    python benchmarks/export.py [POLICY]

A policy with experts is compared with a network and a linear map for the same task, of the shape
that PPO and linear TRPO have here. Their weights are random: neither size nor time depends on them.
"""

import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import moie
from moie.exports.check import FLAGS
from moie.exports.description import Description, Experts, Layers, describe
from moie.exports.naming import identifier
from moie.policy.base import Array, Policy
from moie.policy.baselines import Linear, Network
from moie.policy.mixture import Mixture

POLICY = Path(__file__).parent.parent / "docs/results/crisp-policies/hopper-3m-k10-s1.safetensors"
HIDDEN = (64, 64)
N = 256
"""States that are taken in turn."""
ROUNDS = 25
"""The fastest of these counts: what else the machine does only adds."""
TIMED = """
#include "NAME.h"
#include <stdio.h>
#include <time.h>

static REAL observations[COUNT][NAME_SIZE], actions[COUNT][NAME_A];

int main(int n_arguments, char **arguments)
{
    FILE *file = fopen(arguments[n_arguments - 1], "rb");
    int i, j, round;

    if (file == NULL || fread(observations, sizeof observations, 1, file) != 1) {
        return 1;
    }
    for (round = 0; round < ROUNDS; round++) {
        const clock_t start = clock();

        for (j = 0; j < REPEATS; j++) {
            for (i = 0; i < COUNT; i++) {
                NAME_act(observations[i], actions[i]MONITOR);
            }
        }
        printf("%.9e\\n", (double)(clock() - start) / CLOCKS_PER_SEC / REPEATS / COUNT);
    }
    return 0;
}
"""


# --- the unfolded program ------------------------------------------------------------------------


def _n(value: float) -> str:
    """A number as it was learned, in single precision."""
    return str(np.float32(value))


def unfolded(description: Description) -> str:
    """The policy as a program without loops, tables and comments."""
    if isinstance(description, Experts):
        body, d = _experts(description), len(description.scale)
    else:
        assert isinstance(description, Layers)
        body, d = _layers(description), len(description.scale)
    lines = ["from math import exp, tanh", "def act(x):"]
    lines += [f"    {', '.join(f'x{i}' for i in range(d))}, = x", *(f"    {one}" for one in body)]
    bounds = zip(description.low, description.high, strict=True)
    clipped = [f"min(max(a{j}, {_n(low)}), {_n(high)})" for j, (low, high) in enumerate(bounds)]
    return "\n".join([*lines, f"    return [{', '.join(clipped)}]", ""])


def _experts(of: Experts) -> list[str]:
    lines = []
    for k, (prototype, weight) in enumerate(zip(of.prototypes, of.weights, strict=True)):
        pairs = enumerate(zip(prototype, of.scale, strict=True))
        terms = [f"((x{i} - {_n(p)}) / {_n(s)})**2" for i, (p, s) in pairs]
        lines.append(f"s{k} = {_n(weight)} * exp(-({' + '.join(terms)}))")
    lines.append(f"t = 1 + {' + '.join(f's{k}' for k in range(len(of.weights)))}")
    for j, (default, column) in enumerate(zip(of.default, of.actions.T, strict=True)):
        terms = [f"{_n(value)} * s{k}" for k, value in enumerate(column)]
        lines.append(f"a{j} = ({_n(default)} + {' + '.join(terms)}) / t")
    return lines


def _layers(of: Layers) -> list[str]:
    lines = [
        f"x{i} = (x{i} - {_n(m)}) / {_n(s)}"
        for i, (m, s) in enumerate(zip(of.mean, of.scale, strict=True))
        if (m, s) != (0, 1)
    ]
    for layer, (matrix, bias) in enumerate(zip(of.matrices, of.biases, strict=True)):
        is_last, inputs = layer == len(of.matrices) - 1, "x" if layer == 0 else f"h{layer}_"
        for j, (row, b) in enumerate(zip(matrix, bias, strict=True)):
            total = " + ".join([_n(b), *(f"{_n(w)} * {inputs}{i}" for i, w in enumerate(row))])
            lines.append(f"a{j} = {total}" if is_last else f"h{layer + 1}_{j} = tanh({total})")
    return lines


# --- policies and states -------------------------------------------------------------------------


def _common(like: Policy) -> dict[str, Any]:
    names = ["task", "default_action", "log_std", "action_low", "action_high", "feature_names"]
    names += ["action_names", "observation_shape", "action_shape"]
    d = len(like.feature_names)
    unscaled = {"feature_mean": np.zeros(d), "feature_scale": np.ones(d)}
    return {name: getattr(like, name) for name in names} | unscaled


def network(like: Policy) -> Network:
    """A network as PPO has it for the same task."""
    rng = np.random.default_rng(0)
    sizes = (len(like.feature_names), *HIDDEN, len(like.action_names))
    pairs = list(itertools.pairwise(sizes))
    return Network(
        **_common(like),
        matrices=tuple(rng.normal(size=(b, a)) / np.sqrt(a) for a, b in pairs),
        biases=tuple(np.zeros(b) for _, b in pairs),
    )


def linear(like: Policy) -> Linear:
    """A linear map as linear TRPO has it for the same task."""
    shape = (len(like.action_names), len(like.feature_names))
    return Linear(**_common(like), matrix=np.random.default_rng(0).normal(size=shape))


def states(policy: Any) -> Array:
    """States around the prototypes, in single precision."""
    rng = np.random.default_rng(0)
    some = policy.prototypes[rng.integers(policy.n_experts, size=N)]
    near = some + 0.3 * policy.feature_scale * rng.normal(size=some.shape)
    return near.astype(np.float32).astype(np.float64)


# --- measuring -----------------------------------------------------------------------------------


def timed(act: Callable[[Any], Any], observations: Any, repeats: int) -> float:
    """Seconds of the processor for a step, the fastest round."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(repeats):
            for observation in observations:
                act(observation)
        rounds.append((time.process_time() - start) / repeats / len(observations))
    return min(rounds)


def timed_c(policy: Policy, rows: Array, folder: Path, precision: Any) -> float:
    """The same of the export to C."""
    out = moie.export(policy, "c", out=folder / precision, precision=precision)
    name = identifier(policy.task)
    text = TIMED.replace("NAME_SIZE", f"{name.upper()}_FEATURES")
    text = text.replace("NAME_A]", f"{name.upper()}_ACTIONS]")
    words = {"NAME": name, "REAL": precision, "COUNT": str(N), "ROUNDS": str(ROUNDS)}
    words["MONITOR"] = ", NULL" if isinstance(policy, Mixture) else ""
    for word, meant in (words | {"REPEATS": "100"}).items():
        text = text.replace(word, meant)
    (out / "timed.c").write_text(text)
    (out / "states").write_bytes(rows.astype(np.float32 if precision == "float" else float).data)
    command = ["gcc", *FLAGS, f"{name}.c", "timed.c", "-o", "timed", "-lm"]
    subprocess.run(command, cwd=out, check=True)
    done = subprocess.run([out / "timed", out / "states"], capture_output=True, check=True)
    return min(map(float, done.stdout.split()))


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(policy: Policy, rows: Array, folder: Path) -> dict[str, float]:
    """Every figure of a policy, times in microseconds."""
    program = unfolded(describe(policy))
    (folder / "unfolded.py").write_text(program)
    act = _module(folder / "unfolded.py").act
    meant, _ = policy.predict(rows.reshape(-1, *policy.observation_shape), deterministic=True)
    error = np.abs(np.array([act(row) for row in rows.tolist()]) - meant.reshape(N, -1)).max()
    assert error < 1e-4, f"the unfolded program differs from the policy by {error}"
    exported = moie.export(policy, "python", out=folder / "python")
    module = _module(exported / f"{identifier(policy.task)}.py")
    listed, single = rows.tolist(), rows.astype(np.float32)
    seconds = {
        "unfolded Python": timed(act, listed, 1),
        "exported Python": timed(module.act, listed, 1),
        "C, double": timed_c(policy, rows, folder, "double"),
        "C, float": timed_c(policy, rows, folder, "float"),
        "`predict`": timed(lambda row: policy.predict(row, deterministic=True), single, 1),
    }
    sizes = {"parameters": policy.n_parameters, "bytes unfolded": len(program.encode())}
    return sizes | {name: 1e6 * value for name, value in seconds.items()}


def main() -> None:
    """Print a table in Markdown."""
    policy: Any = moie.load(sys.argv[1] if len(sys.argv) > 1 else POLICY)
    rows = states(policy)
    found: dict[str, dict[str, float]] = {}
    others = {f"{policy.n_experts} experts": policy, "network": network(policy)}
    for name, one in (others | {"linear map": linear(policy)}).items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measure(one, rows, Path(folder))
    print(f"{policy.task}, {len(policy.feature_names)} features; times of a step in µs\n")
    print(f"| | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for figure in next(iter(found.values())):
        values = [one[figure] for one in found.values()]
        shown = [f"{v:,}" if isinstance(v, int) else f"{v:.3g}" for v in values]
        print(f"| {figure} | {' | '.join(shown)} |")
    mine, net = (list(found.values())[i] for i in (0, 1))
    for precision in ("C, double", "C, float"):
        print(
            f"\n{precision}: {mine['`predict`'] / mine[precision]:.0f} times as fast as `predict`, "
            f"{net[precision] / mine[precision]:.1f} times as fast as the network's C"
        )


if __name__ == "__main__":
    main()
