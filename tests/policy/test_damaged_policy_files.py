"""Damaged policy files: an InputError, or a policy that acts finitely; nothing else, and soon."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moie.errors import InputError
from moie.explanation.program import program
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from tests.fuzzing import at_most, mutated_safetensors

DATA = Path(__file__).parent.parent / "data"
FILES = sorted(DATA.glob("*.safetensors"))
HERE = Path("some.safetensors")
EXTREMES = np.array([0.0, 1e-300, -1.0, 1e6, -1e30, 1e60])


def resized(content: bytes, seed: int) -> bytes:
    """Some numbers of the tensors replaced by extreme ones: damage that no parser sees."""
    rng = np.random.default_rng(seed)
    size = 8 + int.from_bytes(content[:8], "little")
    values = np.frombuffer(content[size:][: (len(content) - size) // 8 * 8], np.float64).copy()
    extremes = [0.0, -0.0, 5e-324, 1e-200, 1e-30, -1.0, 2.0, 800.0, 1e30, 1e61, 1e200, 1e308]
    for place in rng.integers(len(values), size=rng.integers(1, 4)):
        values[place] = rng.choice(extremes) * rng.choice([1, 1, -1])
    return content[:size] + values.tobytes() + content[size + values.nbytes :]


def damaged(content: bytes, seed: int) -> bytes:
    return resized(content, seed) if seed % 4 == 0 else mutated_safetensors(content, seed)


def use(policy: Policy) -> None:
    """Act in ordinary and in extreme states, and be read."""
    n = len(policy.feature_names)
    rng = np.random.default_rng(0)
    flat = np.concatenate([rng.normal(size=(3, n)), rng.choice(EXTREMES, (3, n))])
    states = flat.reshape(-1, *policy.observation_shape)
    policy.seed(0)
    actions = [policy.predict(states, deterministic=True)[0], policy.predict(states)[0]]
    actions += [policy.predict(state, deterministic=True)[0] for state in states]
    actions += [policy.clipped(policy.mean_of(state)) for state in flat]
    assert all(np.isfinite(action).all() for action in actions)
    if isinstance(policy, Mixture) and policy.n_experts:
        why = policy.explain(states[-1])
        assert np.isfinite([*why.memberships, *why.distances, *why.action]).all()
        str(why)
    program(policy)


def outcome(content: bytes) -> str:
    with at_most(2.0):
        try:
            policy = policy_file.from_bytes(content, HERE)
        except InputError as error:
            reason = str(error)
        else:
            use(policy)
            return "loaded"
    assert "\n" not in reason
    assert len(reason) < 400
    return "refused"


def outcomes(seeds: range) -> Counter:
    """Of the files of `DATA` as they were written before there was a digest, in turn."""
    originals = [path.read_bytes() for path in FILES]
    return Counter(outcome(damaged(originals[s % len(originals)], s // 4)) for s in seeds)


def test_damage_is_refused_or_acts_finitely() -> None:
    found = outcomes(range(1500))
    assert min(found["refused"], found["loaded"]) > 50, "both must happen, or nothing is shown"


@pytest.mark.slow
def test_100_000_damaged_files_are_refused_or_act_finitely() -> None:
    found = outcomes(range(1500, 101_500))
    print(dict(found))
    assert found.total() == 100_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_flipped_bit_of_a_file_with_a_digest_is_refused(path: Path) -> None:
    """But for those in names, which decide nothing, and in the key of the digest itself."""
    policy = policy_file.load_file(path)
    content = policy_file.to_bytes(policy)
    rng = np.random.default_rng(7)
    for place in rng.integers(len(content), size=300):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        try:
            found = policy_file.from_bytes(bytes(flipped), HERE)
        except InputError:
            continue
        names = {name: getattr(policy, name) for name in policy_file.NAMES}
        assert policy_file.to_bytes(replace(found, **names)) == content
