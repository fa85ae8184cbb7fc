"""The numbers that the paper authors' code gives, in double and in single precision."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moie.core.advantage import gae
from moie.core.batch import Batch
from moie.core.gaussian import mean_shift
from moie.core.policy import MixturePolicy
from moie.core.selection import KEPT, compress, swap_objective
from moie.core.trust_region import Anchor, project_all, weight_step

DATA = np.load(Path(__file__).parent.parent / "data" / "authors_cases.npz")
CASES = range(int(DATA["n_cases"]))
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}


def evaluate(given: dict) -> dict:
    """Everything that the file expects, under its names, from one case's inputs."""
    names = ("weights", "actions", "log_std")
    policy = MixturePolicy(given["prototypes"], *(given[n] for n in names), given["temperature"])
    new = MixturePolicy(
        given["prototypes"], *(given[f"new_{n}"] for n in names), given["temperature"]
    )
    states, taken, bound = given["states"], given["taken"], given["bound"]
    anchor = Anchor.of(policy, states, taken)
    with_anchor_actions = jax.vmap(new.membership)(states) @ anchor.actions
    step = weight_step(jax.vmap(new.strength)(states), with_anchor_actions, anchor, bound)
    activation = jax.vmap(new.activation)(states)
    projected = project_all(new, activation, anchor, bound, given["entropy_floor"])
    swapped = eqx.tree_at(lambda p: p.prototypes, policy, given["swapped_prototypes"])
    compressed = compress(
        policy,
        states,
        taken,
        given["advantages"],
        anchor,
        given["compress_bound"],
        given["reweight_bound"],
    )
    ends = (given["terminated"] > 0, given["episode_end"] > 0)
    batch = Batch(states, states, taken, given["rewards"], *ends)
    values = (given["values"], given["next_values"])
    advantages = gae(batch, *values, given["discount"], given["gae_lambda"])
    return {
        "activation": jax.vmap(policy.activation)(states),
        "membership": jax.vmap(policy.membership)(states),
        "mean": jax.vmap(policy.mean)(states),
        "log_prob": jax.vmap(policy.log_prob)(states, taken),
        "entropy": policy.entropy(),
        "mean_shift": mean_shift(with_anchor_actions, anchor.means, anchor.log_std),
        "weight_step": step,
        "projected_weights": projected.policy.weights,
        "covariance_step": projected.gaussian.covariance_step,
        "mean_step": projected.gaussian.mean_step,
        "projected_means": projected.gaussian.means,
        "projected_log_std": projected.policy.log_std,
        "projected_actions": projected.policy.actions,
        "kl": projected.gaussian.kl,
        "swap_objective": swap_objective(jax.vmap(swapped.activation)(states)),
        "swap_mean_shift": mean_shift(jax.vmap(swapped.mean)(states), anchor.means, anchor.log_std),
        "deleted": compressed.rows != KEPT,
        "compressed_prototypes": compressed.policy.prototypes,
        "compressed_weights": compressed.policy.weights,
        "compressed_actions": compressed.policy.actions,
        "rows": compressed.rows,
        "gae": advantages,
        "value_target": advantages + given["values"],
        "default_share": jax.vmap(policy.default_share)(states),
    }


# One compilation a case and precision; a low level keeps that short, the formulas are the same.
evaluate_quickly = jax.jit(evaluate, compiler_options={"xla_backend_optimization_level": 0})


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("number", CASES)
def test_case(number: int, precision: str):
    prefix, tolerance = f"{number:02d}.", TOLERANCE[precision]
    expected = {n.removeprefix(prefix): DATA[n] for n in DATA.files if n.startswith(prefix)}
    with jax.enable_x64(precision == "float64"):
        given = {name: jnp.asarray(value, dtype=precision) for name, value in expected.items()}
        found = {name: np.asarray(value) for name, value in evaluate_quickly(given).items()}
    rows, shares = found.pop("rows"), found.pop("default_share")
    for name, value in found.items():
        # Numbers that pass through zero are compared with the size of their array.
        size = np.abs(expected[name]).max() * tolerance
        np.testing.assert_allclose(value, expected[name], rtol=tolerance, atol=size, err_msg=name)
    np.testing.assert_allclose(shares, 1 - expected["membership"].sum(1), rtol=tolerance)
    np.testing.assert_array_equal(rows >= 0, found["deleted"])
    states = np.asarray(expected["states"], dtype=precision)
    new = rows >= 0
    np.testing.assert_array_equal(found["compressed_prototypes"][new], states[rows[new]])


def test_full_batch_projection_is_the_policy_of_the_projection():
    given = {n[3:]: jnp.asarray(DATA[n], "float32") for n in DATA.files if n.startswith("10.")}
    names = ("weights", "actions", "log_std")
    policy = MixturePolicy(given["prototypes"], *(given[n] for n in names), given["temperature"])
    new = MixturePolicy(
        given["prototypes"], *(given[f"new_{n}"] for n in names), given["temperature"]
    )
    anchor = Anchor.of(policy, given["states"], given["taken"])
    activation = jax.vmap(new.activation)(given["states"])
    found = project_all(new, activation, anchor, given["bound"], given["entropy_floor"]).policy
    np.testing.assert_allclose(found.weights, given["projected_weights"], rtol=1e-3)
    np.testing.assert_allclose(found.actions, given["projected_actions"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("experts", "parameters"), [(10, 378), (20, 748), (40, 1488)])
def test_parameters_on_ant_are_the_papers(experts, parameters):
    policy = MixturePolicy(
        jnp.zeros((experts, 28)), jnp.zeros(experts), jnp.zeros((experts, 8)), jnp.zeros(8), 0.33
    )
    assert policy.n_parameters == parameters
