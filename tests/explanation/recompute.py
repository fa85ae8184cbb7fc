"""The facts once more, from the policy file alone, by loops that a reader can follow.

Nothing of `moie.explain` is used here, nor the policy's own formulas.
"""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import moie
from moie.environments import tasks
from moie.rollout.episode import Job, Purpose

KINDS = {"sampled": Purpose.EVALUATION_SAMPLED, "mean": Purpose.EVALUATION_MEAN}


def apart(policy: Any, state: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The difference of two states, feature by feature, as the policy sees it."""
    metric = np.ones(len(state)) if policy.metric is None else policy.metric
    return np.array([m * (x - y) for m, x, y in zip(metric, state, other, strict=True)]) / (
        policy.feature_scale
    )


def activations(policy: Any, state: np.ndarray) -> np.ndarray:
    scaled = [apart(policy, state, p) for p in policy.prototypes]
    return np.array([math.exp(-policy.temperature * float(x @ x)) for x in scaled])


def mixture(policy: Any, weights: Any, kept: list[int], state: np.ndarray) -> np.ndarray:
    """Memberships of the kept experts; all other entries are zero."""
    strength = np.zeros(len(policy.weights))
    for k in kept:
        strength[k] = weights[k] * activations(policy, state)[k]
    return strength / (strength.sum() + 1.0)


def action_of(policy: Any, membership: np.ndarray) -> np.ndarray:
    return policy.default_action + membership @ (policy.actions - policy.default_action)


def bounded(policy: Any, action: Any) -> np.ndarray:
    return np.clip(action, policy.action_low, policy.action_high)


def read(policy: Any, members: np.ndarray, n_parts: int) -> np.ndarray:
    """What the parts with the largest shares say, the default being the last of all parts."""
    said = [(m, -k, policy.actions[k]) for k, m in enumerate(members)]
    said.append((1.0 - members.sum(), -len(members), policy.default_action))
    said = sorted(said, key=lambda part: part[:2], reverse=True)[:n_parts]
    return sum(m * action for m, _, action in said) / sum(m for m, _, _ in said)


def play(
    policy: Any, weights: Any, kept: list[int], job: Job, n_parts: int | None = None
) -> dict[str, Any]:
    """One episode, step by step; by the leading parts only, if their number is given."""
    env = tasks.make(policy.task)
    state = np.ravel(env.reset(seed=job.seed)[0]).astype(float)
    noise = job.noise().standard_normal((256, len(policy.action_names)))
    found: dict[str, list] = {"states": [], "members": [], "rewards": [], "actions": []}
    is_over, step = False, 0
    while not is_over and step < job.max_steps:
        members = mixture(policy, weights, kept, state)
        action = action_of(policy, members)
        if n_parts is not None:
            action = read(policy, members, n_parts)
        if job.purpose is Purpose.EVALUATION_SAMPLED:
            action = action + noise[step] * np.exp(policy.log_std)
        action = bounded(policy, action.astype(np.float32)).astype(np.float32)
        found["states"].append(state)
        found["members"].append(members)
        found["actions"].append(action)
        observation, reward, terminated, truncated, _ = env.step(action)
        found["rewards"].append(float(reward))
        state, is_over, step = (
            np.ravel(observation).astype(float),
            terminated or truncated,
            step + 1,
        )
    env.close()
    return {name: np.array(values) for name, values in found.items()} | {"terminated": terminated}


def series(policy: Any, weights: Any, kept: list[int], kind: str, seed: int, number: int, n: int):
    jobs = [Job(seed, KINDS[kind], number, i, 200) for i in range(n)]
    return jobs, [play(policy, weights, kept, job) for job in jobs]


def error(values: Any) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def facts(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """What the facts should hold; `given` says only which episodes and which loss."""
    policy = moie.load(path)
    n, seed = given["evaluation"]["n_episodes"], given["evaluation"]["run_seed"]
    everyone = list(range(len(policy.weights)))
    jobs, episodes = series(policy, policy.weights, everyone, "mean", seed, 0, n)
    states = np.concatenate([e["states"] for e in episodes])
    members = np.concatenate([e["members"] for e in episodes])
    returns = [e["rewards"].sum() for e in episodes]
    held = held_members(policy, states)
    order = sorted(everyone, key=lambda k: (-lead(held, k), -held[:, k].mean()))
    shown = sorted(range(n), key=lambda i: returns[i])[(n - 1) // 2]
    expected: dict[str, Any] = {
        "policy": {
            "n_experts": len(policy.weights),
            "n_parameters": sum(
                x.size
                for x in (
                    policy.prototypes,
                    policy.weights,
                    policy.actions,
                    policy.log_std,
                    np.array([]) if policy.metric is None else policy.metric,
                )
            ),
            "trained": {"steps": 0, "seed": None} | policy.trained,
        },
        "evaluation": {
            "run_seed": seed,
            "n_episodes": n,
            "n_states": len(states),
            "return": np.mean(returns),
            "return_error": error(returns),
            "episodes": [
                {"seed": job.seed, "return": total, "length": len(e["rewards"])}
                for job, total, e in zip(jobs, returns, episodes, strict=True)
            ],
        },
        "truth": truth(policy, jobs, returns, states, members)
        | fidelity(policy, [e["members"] for e in episodes]),
        "experts": [expert(policy, k, episodes, states, members, held) for k in order],
        "default": default(policy, episodes, held),
        "features": [
            dict(zip(("low", "q05", "median", "q95", "high"), quantiles, strict=True))
            for quantiles in np.quantile(states, (0.0, 0.05, 0.5, 0.95, 1.0), axis=0).T
        ],
        "spacing": spacing(policy, states),
        "shown": {
            "seed": jobs[shown].seed,
            "return": returns[shown],
            "length": len(episodes[shown]["rewards"]),
            "memberships": episodes[shown]["members"],
            "leader": [leader(row) for row in episodes[shown]["members"]],
            "strongest": np.argmax(episodes[shown]["members"], axis=1),
            "actions": episodes[shown]["actions"],
        },
        "scenes": {"applied": 5},
        "overlap": overlaps(policy, states),
    }
    if "pruning" in given:
        both = [
            e
            for kind in KINDS
            for e in series(policy, policy.weights, everyone, kind, seed, 0, n)[1]
        ]
        visited = np.concatenate([e["states"] for e in both])
        expected["pruning"] = pruning(policy, given["pruning"], seed, n, visited)
    if policy.metric is not None:
        expected["closeness"] = closeness(policy, states)
    if given["cycle"] is not None:
        expected["cycle"] = cycle([e["members"] for e in episodes])
        for one in expected["experts"]:
            one["phase"] = phase(expected["cycle"]["profile"][:, one["expert"]])
    if all(policy.origins):
        replays = [replayed(policy, k) for k in order]
        expected["scenes"] |= {
            "n_replayed": len(replays),
            "are_set": False,
            "n_matching": sum(x <= 1e-6 for x in replays),
            "largest_difference": max(replays),
        }
    return expected


def truth(
    policy: Any, jobs: list[Job], whole: list[float], states: np.ndarray, members: np.ndarray
) -> dict[str, Any]:
    """How literally the program may be taken: parts counted state by state, episodes played."""
    low, high = policy.action_low, policy.action_high
    counts = []
    for membership in members:
        wanted = bounded(policy, action_of(policy, membership))
        for n_parts in range(1, len(membership) + 2):
            found = bounded(policy, read(policy, membership, n_parts))
            if all(abs(found - wanted) <= 0.05 * (high - low) + 1e-12):
                break
        counts.append(n_parts)
    everyone = list(range(len(policy.weights)))
    nobody = np.zeros(len(everyone))
    earned = {
        "whole": whole,
        "alone": [play(policy, policy.weights, everyone, job, 1)["rewards"].sum() for job in jobs],
        "pair": [play(policy, policy.weights, everyone, job, 2)["rewards"].sum() for job in jobs],
        "default": [play(policy, nobody, everyone, job)["rewards"].sum() for job in jobs],
    }
    mean = {name: np.mean(returns) for name, returns in earned.items()}
    gains = [a - b for a, b in zip(whole, earned["default"], strict=True)]
    is_gain = np.mean(gains) > stats.t.ppf(0.975, len(gains) - 1) * error(gains)
    gain = mean["whole"] - mean["default"]
    inside = [all((low <= action) & (action <= high)) for action in policy.actions]
    found = {
        "attention": np.mean(counts),
        "coverage": members.sum() / len(members),
        "in_range": np.mean(inside),
        "largest_action": max(
            max(abs(action - (low + high) / 2) / ((high - low) / 2)) for action in policy.actions
        ),
        "tolerance": 0.05,
        "n_episodes": len(jobs),
    }
    for name, returns in earned.items():
        is_positive = min(mean[name], mean["whole"]) > 0
        found[name] = {
            "return": mean[name],
            "error": error(returns),
            "ratio": mean[name] / mean["whole"] if is_positive else None,
            "kept": (mean[name] - mean["default"]) / gain if is_gain else None,
        }
    return found


def fidelity(policy: Any, episodes: list[np.ndarray]) -> dict[str, Any]:
    """How often the leading parts say what the policy does."""
    low, high = policy.action_low, policy.action_high
    span, middle = high - low, (low + high) / 2
    shares: dict[str, list[float]] = {"near_alone": [], "near_pair": [], "wrong_side": []}
    for members in episodes:
        near, wrong, counted = {1: 0, 2: 0}, 0, 0
        for row in members:
            done = bounded(policy, action_of(policy, row))
            for n in (1, 2):
                said = bounded(policy, read(policy, row, n))
                near[n] += all(abs(said - done) <= 0.1 * span)
            first = bounded(policy, read(policy, row, 1))
            for j in range(len(span)):
                if abs(done[j] - middle[j]) > 0.05 * span[j]:
                    counted += 1
                    wrong += (done[j] - middle[j]) * (first[j] - middle[j]) < 0
        shares["near_alone"].append(near[1] / len(members))
        shares["near_pair"].append(near[2] / len(members))
        if counted:
            shares["wrong_side"].append(wrong / counted)
    return {name: share(values or [0.0]) for name, values in shares.items()} | {"near": 0.1}


def share(values: list[float]) -> dict[str, float | None]:
    n = len(values)
    if n < 2:
        return {"share": np.mean(values), "low": None, "high": None}
    half = stats.t.ppf(0.975, n - 1) * error(values)
    mean = np.mean(values)
    return {"share": mean, "low": max(0.0, mean - half), "high": min(1.0, mean + half)}


def closeness(policy: Any, states: np.ndarray) -> list[dict[str, float]]:
    """The feature with the largest factor first."""
    found = []
    for i in sorted(range(len(policy.metric)), key=lambda i: -policy.metric[i]):
        radius = policy.feature_scale[i] / policy.metric[i] / math.sqrt(policy.temperature)
        low, high = np.quantile(states[:, i], (0.05, 0.95))
        one = {"feature": i, "metric": policy.metric[i], "radius": radius}
        found.append(one | {"span": (high - low) / radius})
    return found


def spacing(policy: Any, states: np.ndarray) -> float:
    found = []
    for i in range(0, len(states), -(-len(states) // 200)):
        others = [j for j in range(len(states)) if j != i]
        found.append(min(np.linalg.norm(apart(policy, states[j], states[i])) for j in others))
    return float(np.median(found))


def leader(row: np.ndarray) -> int:
    """The part with the largest share; the number of experts stands for the default."""
    return int(np.argmax([*row, 1.0 - row.sum()]))


def lead(members: np.ndarray, k: int) -> float:
    return sum(leader(row) == k for row in members) / len(members)


def held_members(policy: Any, states: np.ndarray) -> np.ndarray:
    """Memberships in the states that the policy file holds; without any, in 500 of these."""
    everyone = list(range(len(policy.weights)))
    if policy.visited is None:
        rows = np.linspace(0, len(states) - 1, min(500, len(states))).round().astype(int)
        held = states[rows].astype(np.float32)
    else:
        held = policy.visited.states
    return np.array([mixture(policy, policy.weights, everyone, s.astype(float)) for s in held])


def radii_away(policy: Any, state: np.ndarray, k: int) -> float:
    away = apart(policy, state, policy.prototypes[k])
    return math.sqrt(policy.temperature) * float(np.linalg.norm(away))


def reach(policy: Any, k: int) -> float | None:
    """Where exp(-r^2) times its weight is one."""
    return math.sqrt(math.log(policy.weights[k])) if policy.weights[k] > 1 else None


def expert(
    policy: Any, k: int, episodes: list, states: Any, members: Any, held: Any
) -> dict[str, Any]:
    lengths: list[int] = []
    for episode in episodes:
        run = 0
        for row in [*episode["members"], None]:
            if row is not None and leader(row) == k:
                run += 1
            elif run:
                lengths.append(run)
                run = 0
    distances = [np.linalg.norm(apart(policy, s, policy.prototypes[k])) for s in states]
    origin = policy.origins[k]
    return {
        "expert": k,
        "weight": policy.weights[k],
        "action": policy.actions[k],
        "prototype": policy.prototypes[k],
        "share": held[:, k].mean(),
        "peak": members[:, k].max(),
        "lead": lead(held, k),
        "reach": reach(policy, k),
        "most": policy.weights[k] / (1 + policy.weights[k]),
        "stretch": np.mean(lengths) if lengths else 0.0,
        "distance": min(distances),
        "origin": origin and {n: getattr(origin, n) for n in ("iteration", "episode", "step")},
    }


def default(policy: Any, episodes: list, held: Any) -> dict[str, Any]:
    left = [1.0 - e["members"].sum(axis=1) for e in episodes]
    together = np.concatenate(left)
    moments: list[dict[str, Any]] = []
    places = [(i, t) for i, e in enumerate(left) for t in range(len(e))]
    for i, t in sorted(places, key=lambda place: -left[place[0]][place[1]]):
        if any(m["episode"] == i and abs(m["step"] - t) < 50 for m in moments):
            continue
        state = episodes[i]["states"][t]
        differs = [apart(policy, state, p) for p in policy.prototypes]
        first = int(np.argmax(episodes[i]["members"][t]))
        largest = sorted(range(len(state)), key=lambda j: -abs(differs[first][j]))[:3]
        difference = state - policy.prototypes[first]
        moments.append(
            {
                "episode": i,
                "step": t,
                "default": left[i][t],
                "strongest": first,
                "distance": radii_away(policy, state, first),
                "reach": reach(policy, first),
                "differences": [[policy.feature_names[j], difference[j]] for j in largest],
            }
        )
        if len(moments) == 8:
            break
    width = -(-max(map(len, left)) // 200)
    bins: list[list[float]] = [[] for _ in range(-(-max(map(len, left)) // width))]
    for episode in left:
        for t, value in enumerate(episode):
            bins[t // width].append(value)
    return {
        "curve": [np.mean(values) for values in bins],
        "curve_episodes": [sum(len(e) > i * width for e in left) for i in range(len(bins))],
        "share": 1.0 - held.sum() / len(held),
        "lead": lead(held, held.shape[1]),
        "half": (together >= 0.5).mean(),
        "threshold": 0.5,
        "moments": moments,
    }


def overlaps(policy: Any, states: Any) -> np.ndarray:
    active = np.array([activations(policy, s) for s in states])
    k = active.shape[1]
    return np.array(
        [
            [
                np.minimum(active[:, i], active[:, j]).sum()
                / np.maximum(active[:, i], active[:, j]).sum()
                for j in range(k)
            ]
            for i in range(k)
        ]
    )


def pruning(policy: Any, given: dict[str, Any], seed: int, n: int, states: Any) -> dict[str, Any]:
    """Every removal tried, with every heir and with none; returns by playing the episodes."""
    span = policy.action_high - policy.action_low
    kept, weights = list(range(len(policy.weights))), policy.weights.copy()
    base = [bounded(policy, action_of(policy, mixture(policy, weights, kept, s))) for s in states]
    nothing = {"removed": None, "heir": None, "change": 0.0, "largest": 0.0, "bound": 0.0}
    curve = [{**nothing, "n_experts": len(kept), "answer": "whole"}]
    policies = [(list(kept), weights)]
    while len(kept) > 1:
        tried = []
        for k in kept:
            for heir in [None, *(j for j in kept if j != k)]:
                other = weights.copy()
                if heir is not None:
                    other[heir] += other[k]
                rest = [j for j in kept if j != k]
                new = [
                    bounded(policy, action_of(policy, mixture(policy, other, rest, s)))
                    for s in states
                ]
                moved = abs(np.array(new) - base) / span
                change = math.sqrt(np.mean(moved**2))
                bound = farthest(policy, weights, kept, k, heir)
                tried.append((change, bound, moved.max(), k, heir, rest, other))
        least = min(one[0] for one in tried)
        tied = [one for one in tried if one[0] <= least + 0.001]
        change, bound, largest, removed, heir, kept, weights = min(tied, key=lambda one: one[1])
        row = {"n_experts": len(kept), "removed": removed, "heir": heir, "change": change}
        row |= {"largest": largest, "bound": min(1.0, curve[-1]["bound"] + bound)}
        curve.append(row)
        policies.append((list(kept), weights))
    margin, most = max(given["loss"], 0.01), given["most_episodes"]
    counts = [n]
    while counts[-1] < most:
        counts.append(min(most, math.ceil(1.25 * counts[-1])))
    earned = {
        kind: [returns(policy, *reversed(one), kind, seed, most) for one in policies]
        for kind in KINDS
    }
    chosen, is_over, played = 0, False, dict.fromkeys(KINDS, n)
    for i, row in enumerate(curve[1:], start=1):
        if row["bound"] <= 0.01:
            row["answer"] = "proved"
        elif row["largest"] <= 0.01 and row["bound"] <= 0.05:
            row["answer"] = "seen"
        else:
            for count in counts[:1] if is_over else counts:
                for kind in KINDS:
                    if row.get(kind, {"verdict": "undecided"})["verdict"] == "undecided":
                        whole, some = (earned[kind][j][:count] for j in (0, i))
                        row[kind] = compared(some, whole, margin)
                        played[kind] = max(played[kind], count)
                verdicts = {row[kind]["verdict"] for kind in KINDS}
                row["answer"] = next(
                    v for v in ("not enough", "undecided", "enough") if v in verdicts
                )
                if row["answer"] != "undecided":
                    break
            if is_over:
                row["answer"] = "not tried"
            is_over = is_over or row["answer"] != "enough"
        chosen = chosen if is_over else i
    for kind in KINDS:
        whole = earned[kind][0][: played[kind]]
        curve[0][kind] = compared(whole, whole, margin)
    d, a, size = policy.prototypes.shape[1], policy.actions.shape[1], len(policies[chosen][0])
    return {
        "episodes": n,
        "most_episodes": most,
        "loss": given["loss"],
        "margin": margin,
        "chance": 0.05,
        "alike": 0.01,
        "tolerance": 0.05,
        "n_states": len(states),
        "curve": curve,
        "n_experts": size,
        "kept": policies[chosen][0],
        "n_parameters": size * (d + a + 1) + a,
    }


def farthest(policy: Any, weights: Any, kept: list[int], k: int, heir: int | None) -> float:
    """The largest membership of an expert, times the longest way from its action to another; and
    the same for the weight that an heir gains, as if that were an expert of its own."""
    span = policy.action_high - policy.action_low
    said = [policy.actions[j] for j in kept if j != k] + [policy.default_action]
    limit = highest(policy, weights, kept, k)
    way = np.max([abs(policy.actions[k] - action) / span for action in said], axis=0)
    if heir is None:
        return min(1.0, max(limit * way))
    gain = weights[k] / (1.0 + weights[k] + weights[heir])
    other = np.max([abs(policy.actions[heir] - action) / span for action in said], axis=0)
    return min(1.0, max(limit * way + gain * other))


def highest(policy: Any, weights: Any, kept: list[int], k: int) -> float:
    """An expert's largest membership: uphill from its prototype, in steps that shrink until none
    leads higher."""
    scale = policy.feature_scale / (1.0 if policy.metric is None else policy.metric)
    place, step = policy.prototypes[k].copy(), 1.0
    best = mixture(policy, weights, kept, place)[k]
    while step > 1e-7:
        is_higher = False
        for i, sign in itertools.product(range(len(place)), (-1, 1)):
            other = place.copy()
            other[i] += sign * step * scale[i]
            value = mixture(policy, weights, kept, other)[k]
            if value > best:
                place, best, is_higher = other, value, True
        step = step if is_higher else step / 2
    return best


def returns(policy, weights, kept, kind, seed, n) -> list[float]:
    """Returns of the first episodes with seeds of comparisons."""
    return [e["rewards"].sum() for e in series(policy, weights, kept, kind, seed, 1, n)[1]]


def compared(some: list[float], whole: list[float], margin: float) -> dict[str, Any]:
    """A smaller policy's losses, and the wagers on them, pair by pair."""
    lost = np.array(whole) - np.array(some)
    allowed = margin * abs(np.mean(whole))
    goals = {"enough": [1.0] * 2, "not enough": [1.0] * 2}
    low = high = 0.0
    verdict = "undecided"
    for pair, (before, after) in enumerate(zip(whole, some, strict=True)):
        for name, sign in (("enough", 1), ("not enough", -1)):
            for i, stake in enumerate((0.5, 0.25)):
                spare = margin * math.copysign(1, np.mean(whole)) * before - before + after
                if high > low and pair >= 20:
                    share = spare / (high - low)
                    goals[name][i] *= max(0.0, 1 + sign * stake * share)
            if verdict == "undecided" and np.mean(goals[name]) >= 20:
                verdict = name
        low, high = min(low, before, after), max(high, before, after)
    return {
        "return": np.mean(some),
        "error": error(some),
        "episodes": len(some),
        "loss": lost.mean(),
        "loss_error": error(lost),
        "allowed": allowed,
        "verdict": verdict,
    }


def replayed(policy: Any, k: int) -> float:
    origin = policy.origins[k]
    env = tasks.make(policy.task)
    state = env.reset(seed=origin.seed)[0]
    for action in origin.actions:
        state = env.step(action)[0]
    env.close()
    return float(np.abs(np.ravel(state).astype(float) - policy.prototypes[k]).max())


def cycle(members: list[np.ndarray]) -> dict[str, Any]:
    """Period by the definition of the autocorrelation, then cycles one by one."""
    mean = []
    for lag in range(max(map(len, members)) // 2):
        pairs = together = 0.0
        for m in members:
            if len(m) >= 32 and lag < len(m) // 2:
                centred = m - m.mean(axis=0)
                together += sum(a @ b for a, b in zip(centred, centred[lag:], strict=False))
                pairs += (len(m) - lag) * np.mean([a @ a for a in centred])
        mean.append(together / pairs)
    peaks = [i for i in range(4, len(mean) - 1) if mean[i - 1] <= mean[i] > mean[i + 1]]
    highest = max(mean[i] for i in peaks)
    period = next(i for i in peaks if mean[i] >= 0.8 * highest)
    leader = int(np.argmax(np.concatenate(members).var(axis=0)))
    width, rows, lengths = max(1, period // 4), [], []
    for m in members:
        smooth = (
            np.convolve(m[:, leader], np.ones(width) / width, mode="same") - m[:, leader].mean()
        )
        starts = [t for t in range(1, len(m)) if smooth[t - 1] < 0 <= smooth[t]]
        for a, b in itertools.pairwise(starts):
            if 0.6 * period <= b - a <= 1.5 * period:
                lengths.append(b - a)
                rows += [(int((t - a) / (b - a) * 24), m[t]) for t in range(a, b)]
    profile = np.zeros((24, members[0].shape[1]))
    for i in range(24):
        here = [row for at, row in rows if at == i]  # a short cycle misses some phases
        profile[i] = np.mean(here, axis=0) if here else profile[i - 1]
    return {
        "period": np.mean(lengths),
        "n_cycles": len(lengths),
        "regularity": mean[period],
        "leader": leader,
        "profile": profile,
    }


def phase(profile: np.ndarray) -> float:
    angles = [2 * math.pi * (i + 0.5) / 24 for i in range(24)]
    x = sum(p * math.cos(a) for p, a in zip(profile, angles, strict=True))
    y = sum(p * math.sin(a) for p, a in zip(profile, angles, strict=True))
    return math.atan2(y, x) / (2 * math.pi) % 1.0
