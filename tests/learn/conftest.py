"""No silent broadcasting in the learner; optax itself relies on promotion of types."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def strict():
    with jax.numpy_rank_promotion("raise"):
        yield
