import numpy as np
import pytest


@pytest.fixture(scope="session")
def counts() -> np.ndarray:
    """Return 60 samples × 25 features of rank 3, each feature bent on a scale of its own."""
    of = np.random.default_rng(1)
    product = of.gamma(1, 1, (60, 3)) @ of.gamma(1, 1, (3, 25))
    return (product + 0.1) ** of.uniform(0.5, 2, 25) * of.uniform(0.1, 100, 25)
