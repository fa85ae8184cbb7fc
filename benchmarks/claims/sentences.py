"""The sentences of the paper's section 6 that state a result, and what each of them rests on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.claims import policies
from benchmarks.claims.evidence import Evidence, Who, name_of
from benchmarks.claims.statements import (
    Kind,
    compared,
    farther,
    sized,
    smaller,
    walking,
)
from benchmarks.claims.verdicts import Part, Verdict, all_of, any_of, counted

HOPPER, WALKER, CHEETAH, ANT = (
    f"{name}BulletEnv-v0" for name in ("Hopper", "Walker2D", "HalfCheetah", "Ant")
)
SMALL = ("InvertedPendulumBulletEnv-v0", "Pendulum-v1", "BipedalWalker-v3")
WALKERS = (HOPPER, WALKER, CHEETAH, ANT)
TASKS = (*SMALL, *WALKERS)
STUDY = dict.fromkeys(SMALL, "paper-small") | dict.fromkeys(WALKERS, "paper-locomotion")
FEWEST = dict.fromkeys(SMALL, 5) | dict.fromkeys(WALKERS, 10)
MOST = dict.fromkeys(SMALL, 20) | dict.fromkeys(WALKERS, 40)
"""The fewest and the most experts that the paper has on a task."""
DIFFPROTO = "paper-diffproto"
PPO, TRPO, LINEAR = ("ppo", 0), ("trpo", 0), ("trpo-linear", 0)

Rule = Callable[[Sequence[Part]], Verdict]


@dataclass(frozen=True)
class Claim:
    """A sentence, the parts that it rests on, and how they decide it."""

    quote: str
    parts: Callable[[Evidence], Sequence[Part]]
    rule: Rule = all_of
    read_as: str = ""  # what the sentence is taken to say, where that is not plain


def moie(experts: int) -> Who:
    return "moie", experts


def pair(evidence: Evidence, task: str, a: Who, kind: Kind, b: Who) -> Part:
    """A comparison in the study of the paper's figure that has the task."""
    return compared(evidence, STUDY[task], task, a, kind, b)


def together(text: str, rule: Rule, parts: Sequence[Part]) -> Part:
    """Several parts as one."""
    seeds = tuple(n for part in parts for n in part.seeds)
    steps = tuple(n for part in parts for n in part.steps)
    return Part(text, rule(parts), "", seeds, steps, tuple(parts))


def between(evidence: Evidence, task: str) -> Part:
    """Whether the mixture with the most experts is above one of PPO and TRPO and below the
    other."""
    ours = moie(MOST[task])
    ways = [
        together(
            f"{task}: above {name_of(low)} and below {name_of(high)}",
            all_of,
            [pair(evidence, task, ours, "above", low), pair(evidence, task, high, "above", ours)],
        )
        for low, high in ((PPO, TRPO), (TRPO, PPO))
    ]
    return together(f"{task}: between PPO and TRPO", any_of, ways)


def entropy(evidence: Evidence, task: str, rule: Rule, words: str) -> Part:
    """How many of PPO and TRPO with gradient prototypes and the entropy floor are above moie."""
    names = ("ppo-diffproto-entropy", "trpo-diffproto-entropy")
    parts = [compared(evidence, DIFFPROTO, task, (name, 40), "above", moie(40)) for name in names]
    return together(f"{task}: {words} of the two ahead", rule, parts)


PERFORMANCE = (
    Claim(
        "On smaller scale problems […], TRPO with a neural network performs best",
        lambda e: [
            pair(e, task, TRPO, "above", other)
            for task in SMALL
            for other in (moie(5), moie(10), moie(20), PPO, LINEAR)
        ],
    ),
    Claim(
        "as the number of clusters increases to 20 we are able to approach the performance of "
        "neural network policies",
        lambda e: [
            pair(e, task, moie(20), "close to or above", net)
            for task in SMALL
            for net in (PPO, TRPO)
        ],
    ),
    Claim(
        "When comparing to a linear policy, our algorithm has significantly higher performance "
        "with as little as 5 clusters",
        lambda e: [pair(e, task, moie(5), "above", LINEAR) for task in SMALL],
    ),
    Claim(
        "On the higher dimensional locomotion tasks […], our algorithm is able to match the "
        "performance of TRPO and PPO",
        lambda e: [
            pair(e, task, moie(40), "close to or above", net)
            for task in WALKERS
            for net in (PPO, TRPO)
        ],
        read_as="with the most experts, on each of the four walkers",
    ),
    Claim(
        "despite having less parameters",
        lambda e: [
            smaller(e, STUDY[task], task, moie(40), net) for task in WALKERS for net in (PPO, TRPO)
        ],
    ),
    Claim(
        "but largely outperforms TRPO with a linear policy",
        lambda e: [pair(e, task, moie(40), "far above", LINEAR) for task in WALKERS],
        read_as="with the most experts, on each of the four walkers",
    ),
    Claim(
        "on the AntBulletEnv-v0 environment […] it consistently learns walking policies with 10 "
        "cluster centers",
        lambda e: [walking(e, STUDY[ANT], ANT, moie(10), "every")],
    ),
    Claim(
        "and largely outperforms the baselines with 40 clusters [on AntBulletEnv-v0]",
        lambda e: [pair(e, ANT, moie(40), "far above", other) for other in (PPO, TRPO, LINEAR)],
    ),
    Claim(
        "our policy only has 1488, 748 and 378 parameters for 40, 20 and 10 clusters respectively "
        "whereas the neural network has policy has 6544 and the linear policy 232",
        lambda e: [
            sized(e, STUDY[ANT], ANT, who, size)
            for who, size in (
                (moie(40), 1488),
                (moie(20), 748),
                (moie(10), 378),
                (PPO, 6544),
                (TRPO, 6544),
                (LINEAR, 232),
            )
        ],
    ),
    Claim(
        "able to learn policies competitive with neural network ones on HopperBulletEnv-v0 with "
        "only 20 clusters",
        lambda e: [pair(e, HOPPER, moie(20), "close to or above", net) for net in (PPO, TRPO)],
    ),
    Claim(
        "while 40 are required to edge out PPO on HalfCheetahBulletEnv-v0",
        lambda e: [pair(e, CHEETAH, moie(40), "above", PPO)],
    ),
    Claim(
        "and come close to TRPO [on HalfCheetahBulletEnv-v0]",
        lambda e: [pair(e, CHEETAH, moie(40), "close to or above", TRPO)],
    ),
    Claim(
        "On Walker2DBulletEnv-v0, albeit performance is not too far off of the baselines",
        lambda e: [pair(e, WALKER, moie(40), "close to or above", net) for net in (PPO, TRPO)],
    ),
    Claim(
        "it is the only environment where we did not manage to learn a walking gate with up to 40 "
        "clusters",
        lambda e: [walking(e, STUDY[WALKER], WALKER, moie(k), "none") for k in (10, 20, 40)],
    ),
    Claim(
        "in both environments [Ant and HalfCheetah], walking gaits can be learned with only 10 "
        "clusters",
        lambda e: [walking(e, STUDY[task], task, moie(10), "some") for task in (ANT, CHEETAH)],
    ),
    Claim(
        "by increasing the number of clusters our algorithm approaches the performance of deep RL "
        "algorithms",
        lambda e: [pair(e, task, moie(MOST[task]), "above", moie(FEWEST[task])) for task in TASKS],
        read_as="the most experts are above the fewest, on each of the seven tasks",
    ),
    Claim(
        "With the highest number of clusters […] our algorithm typically sits between PPO and TRPO",
        lambda e: [between(e, task) for task in TASKS],
        lambda parts: counted(parts, 4, 7),
        read_as="on four of the seven tasks or more",
    ),
    Claim(
        "it outperforms PPO on 5 out of 7 tasks",
        lambda e: [pair(e, task, moie(MOST[task]), "above", PPO) for task in TASKS],
        lambda parts: counted(parts, 5, 5),
    ),
    Claim(
        "and outperforms TRPO on only 2 of the 7 tasks",
        lambda e: [pair(e, task, moie(MOST[task]), "above", TRPO) for task in TASKS],
        lambda parts: counted(parts, 2, 2),
    ),
    Claim(
        "For this [smaller] amount of prototypical states, our algorithm is outperformed by both "
        "deep RL baselines on all tasks",
        lambda e: [
            pair(e, task, net, "above", moie(FEWEST[task])) for task in TASKS for net in (PPO, TRPO)
        ],
        read_as="with the fewest experts",
    ),
)

INTERPRETABILITY = (
    Claim(
        "we learned successful gait policies on three PyBullet environments: Hopper, HalfCheetah "
        "and Ant with as little as 10 prototypical states",
        lambda e: [
            walking(e, STUDY[task], task, moie(10), "some") for task in (HOPPER, CHEETAH, ANT)
        ],
    ),
    Claim(
        "the number of clusters that have high activation is typically much lower (less than half) "
        "than K",
        lambda e: [policies.few_lead(WALKERS)],
        read_as="in most published policies on the walkers, fewer than half of the experts have "
        f"the largest membership in {policies.LEADS:.0%} of the visited states or more",
    ),
    Claim(
        "in the Hopper environment the movement relies on only three expert policies",
        lambda e: [policies.needs(HOPPER, 3)],
        read_as="of a policy that walks, moie prune leaves no more within a loss of 5%",
    ),
    Claim(
        "and only four are needed for the HalfCheetah",
        lambda e: [policies.needs(CHEETAH, 4)],
        read_as="of a policy that walks, moie prune leaves no more within a loss of 5%",
    ),
    Claim(
        "when setting K to such lower values from the beginning, we were unable to obtain policies "
        "that successfully walk",
        lambda e: [
            walking(e, STUDY[task], task, moie(k), "none")
            for task, k in ((HOPPER, 3), (CHEETAH, 4))
        ],
    ),
    Claim(
        "the cyclical nature of the movement is clearly visible from the activation of the expert "
        "policies",
        lambda e: [policies.cyclic(task) for task in (HOPPER, CHEETAH)],
        read_as="in a policy that walks they repeat themselves, as moie explain finds it",
    ),
)

DIFFERENTIABLE = (
    Claim(
        "none of the algorithms [TRPO-DiffProto, PPO-DiffProto] is able to learn any successful "
        "gait in any of the environment",
        lambda e: [
            walking(e, DIFFPROTO, task, (name, 40), "none")
            for name in ("trpo-diffproto", "ppo-diffproto")
            for task in WALKERS
        ],
    ),
    Claim(
        "even on HalfCheetah where PPO-DiffProto performs better than our algorithm in average",
        lambda e: [compared(e, DIFFPROTO, CHEETAH, ("ppo-diffproto", 40), "above", moie(40))],
    ),
    Claim(
        "[with the entropy constraint] either one of the baselines […] performs better than our "
        "algorithm on all environment",
        lambda e: [entropy(e, task, any_of, "at least one") for task in WALKERS],
    ),
    Claim(
        "but not both, save for one case",
        lambda e: [entropy(e, task, all_of, "both") for task in WALKERS],
        lambda parts: counted(parts, 1, 1),
    ),
    Claim(
        "the prototypical states left the state space",
        lambda e: [
            farther(e, DIFFPROTO, CHEETAH, (name, 40), moie(40))
            for name in ("ppo-diffproto-entropy", "trpo-diffproto-entropy")
        ],
        read_as="with gradient prototypes they are farther from the states of the last batch",
    ),
)

SECTIONS = {
    "Performance": PERFORMANCE,
    "Interpretability": INTERPRETABILITY,
    "Differentiable prototypes": DIFFERENTIABLE,
}
