"""Which states to put in first: the paper's heuristic h2 against the authors' code's.

    python benchmarks/selection.py [--iterations 30]

On the same policies and batches of a Hopper run, both search with the same number of candidates:
h2 prefers states of small summed activation, the code states of large mean distance. Printed is how
much the swap objective rises, and how many prototypes are swapped.
"""

import argparse

import jax.numpy as jnp
import numpy as np
from session import Session, jax, learner

from moie.core.selection import KEPT, swap_objective, swap_prototypes
from moie.core.trust_region import Anchor


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=30)
    iterations = parser.parse_args().iterations
    session = Session("HopperBulletEnv-v0", 10)
    config = session.config.learner

    @jax.jit
    def both(policy, batch, key):
        anchor = Anchor.of(policy, batch.states, batch.taken)
        differences = batch.states[:, None] - policy.prototypes[None]
        distance = jnp.mean(jnp.sqrt(jnp.sum(differences**2, axis=-1)), axis=1)
        before = swap_objective(jax.vmap(policy.activation)(batch.states))
        found = []
        for coverage in (None, -distance):
            swap = swap_prototypes(
                policy,
                batch.states,
                anchor,
                config.trust_region.bound,
                jnp.asarray(10.0),
                n_candidates=config.selection.candidates,
                coverage=coverage,
                key=key,
            )
            found.append((swap.objective - before, jnp.sum(swap.rows != KEPT)))
        return found

    results = []
    for iteration in range(iterations):
        batch = session.sample()
        if iteration % 2:
            results.append(both(session.state.policy, batch, jax.random.key(iteration)))
        session.take(*learner.learn_jit(config, session.state, batch))
    rises, swaps = np.moveaxis(np.asarray(results, dtype=float), 2, 0)
    print(f"Hopper, 10 experts, {len(results)} swaps on the same policies and batches")
    for i, name in enumerate(("small summed activation (paper)", "large mean distance (code)")):
        print(f"  {name:<32} objective +{rises[:, i].mean():.4f}, {swaps[:, i].mean():.1f} swapped")
    paper, code = (np.mean(sign * (rises[:, 0] - rises[:, 1]) > 0) for sign in (1, -1))
    print(f"  the paper's is better in {paper:.0%} of the swaps, the code's in {code:.0%}")


if __name__ == "__main__":
    main()
