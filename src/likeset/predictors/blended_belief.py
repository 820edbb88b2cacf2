"""What several models believe, each by its share: one belief about z, whose parts live in spaces of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import generator
from likeset.predictors.belief import Belief


class BlendedBelief(Belief):
    """sum_k share_k belief_k about z. Made by ``AnyOf.belief``; never changes.

    Means, deviations and covariances of z are those of the Gaussians of all parts, one after the other.
    """

    def __init__(self, parts: list[Belief], shares: Array) -> None:
        self.parts, self.part_shares = parts, shares
        self.shares = np.concatenate([s * part.shares for s, part in zip(shares, parts, strict=True)])
        self.priors = np.concatenate([part.priors for part in parts])

    def __repr__(self) -> str:
        return f"<BlendedBelief: {len(self.shares)} Gaussians of {len(self.parts)} models>"

    def components(self, X: Any) -> tuple[Array, Array]:
        """Means and standard deviations of z under every Gaussian of every part."""
        found = [part.components(X) for part in self.parts]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([sd for _, sd in found])

    def covariance(self, X: Any) -> Array:
        """Covariances of z at the rows of X under every Gaussian of every part."""
        return np.concatenate([part.covariance(X) for part in self.parts])

    def noise_precision(self, X: Any) -> Array:
        """The precision of noise under every Gaussian of every part."""
        return np.concatenate([part.noise_precision(X) for part in self.parts])

    def supposing(self, X: Any) -> BlendedBelief:
        """The belief after observing just what each part expects."""
        return BlendedBelief([part.supposing(X) for part in self.parts], self.part_shares)

    def draw(self, X: Any, rng: np.random.Generator) -> Array:
        """z at the rows of X for one theta of one part, drawn by the shares."""
        rng = generator(rng)
        k = int(rng.choice(len(self.parts), p=self.part_shares / self.part_shares.sum()))
        return self.parts[k].draw(X, rng)
