"""The pure layers are tested strictly: no silent broadcasting, no silent change of type."""

import jax
import pytest


@pytest.fixture(autouse=True)
def strict():
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield
