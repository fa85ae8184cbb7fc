"""The cycle of a gait, read off the memberships alone: its length, and who is active when."""

import itertools
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array

BINS = 24  # phases that a cycle is divided into
SHORTEST = 4  # steps; below that a membership that alternates would count as a gait
CLEAR = 0.35  # autocorrelation from which on memberships count as cyclic
COVERED = 0.3  # share of all steps that must lie in whole cycles: a stumble now and then is no gait


class Cycle(TypedDict):
    """Memberships over the phase of a cycle, averaged over all cycles."""

    period: float  # mean length, in steps
    n_cycles: int
    regularity: float
    """Autocorrelation of the memberships one period later: one for a perfect repetition."""
    leader: int  # the expert whose rise through its mean begins a cycle
    profile: list[list[float]]  # (BINS, K): mean membership at each phase


def autocorrelation(memberships: list[Array]) -> Array:
    """Autocorrelation of the K memberships together, by lag, one at lag zero. Each episode (T, K)
    counts up to half its length, with as many pairs of steps as it has at that lag."""
    longest = max(map(len, memberships)) // 2
    products, expected = np.zeros(longest), np.zeros(longest)
    for membership in memberships:
        centred = membership - membership.mean(axis=0)
        n, half = len(centred), len(centred) // 2
        spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=0)) ** 2
        products[:half] += np.fft.irfft(spectrum.sum(axis=1), 2 * n)[:half]
        expected[:half] += np.mean(np.sum(centred**2, axis=1)) * (n - np.arange(half))
    rest = 1e-12 * sum(map(len, memberships))
    return np.where(expected > rest, products / np.maximum(expected, rest), 0.0)


def _period(memberships: list[Array]) -> tuple[int, float] | None:
    """The first clear peak of the autocorrelation of episodes of some length, and its height."""
    long = [m for m in memberships if len(m) >= 8 * SHORTEST]
    if not long:
        return None
    mean = autocorrelation(long)
    inner = mean[1:-1]
    peaks = 1 + np.flatnonzero((inner >= mean[:-2]) & (inner > mean[2:]))
    peaks = peaks[peaks >= SHORTEST]
    if not len(peaks) or mean[peaks].max() < CLEAR:
        return None
    first = int(peaks[mean[peaks] >= 0.8 * mean[peaks].max()][0])
    return first, float(mean[first])


def _starts(signal: Array, period: int) -> NDArray[np.int64]:
    """Steps at which the signal, smoothed over a quarter of the period, rises through its mean."""
    width = max(1, period // 4)
    smooth = np.convolve(signal, np.ones(width) / width, mode="same") - signal.mean()
    return 1 + np.flatnonzero((smooth[:-1] < 0) & (smooth[1:] >= 0))


def find_cycle(memberships: list[Array]) -> Cycle | None:
    """The cycle that episodes (each (T, K)) have in common; None where there is none."""
    peak = _period(memberships)
    if peak is None:
        return None
    period, regularity = peak
    leader = int(np.argmax(np.concatenate(memberships).var(axis=0)))
    cycles = [
        membership[start:end]
        for membership in memberships
        for start, end in itertools.pairwise(_starts(membership[:, leader], period))
        if 0.6 * period <= end - start <= 1.5 * period
    ]
    lengths = [len(rows) for rows in cycles]
    if len(lengths) < 3 or sum(lengths) < COVERED * sum(map(len, memberships)):
        return None
    phases = np.concatenate([np.arange(n) / n for n in lengths])
    bins = np.minimum((phases * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    profile = np.zeros((BINS, memberships[0].shape[1]))
    np.add.at(profile, bins, np.concatenate(cycles))
    profile /= np.maximum(counts, 1)[:, None]
    for i in np.flatnonzero(counts == 0):  # in short cycles no step falls on some phases
        profile[i] = profile[i - 1]
    return {
        "period": float(np.mean(lengths)),
        "n_cycles": len(lengths),
        "regularity": regularity,
        "leader": leader,
        "profile": profile.tolist(),
    }


def activity(profile: Array) -> tuple[float, float]:
    """The phase around which a membership profile (BINS,) is centred, and how concentrated it is
    there: one for a single phase, zero for all alike."""
    angles = 2 * np.pi * (np.arange(len(profile)) + 0.5) / len(profile)
    total = profile.sum()
    if total <= 0:
        return 0.0, 0.0
    centre = np.sum(profile * np.exp(1j * angles)) / total
    return float(np.angle(centre) / (2 * np.pi) % 1.0), float(abs(centre))
