"""What the published runs say of the paper's claims: `python -m benchmarks.claims`."""
