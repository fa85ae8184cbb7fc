"""Learning curves of several algorithms on several tasks: a CSV, a figure, a table in Markdown.

    python docs/results/baselines.py RUN...

One panel a task, one colour an algorithm: the mean over seeds, and the standard error around it.
Evaluations use sampled actions.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from curves import HERE, STYLE, evaluations, plt, save

COLOURS = {
    "moie": ("#1f5fa8", "-"),
    "ppo": ("#d9722b", "-"),
    "trpo": ("#3a9a63", "-"),
    "trpo-linear": ("#3a9a63", ":"),
    "ppo-diffproto": ("#b5405a", "-"),
    "trpo-diffproto": ("#7b5fb8", "-"),
    "ppo-diffproto-entropy": ("#b5405a", "--"),
    "trpo-diffproto-entropy": ("#7b5fb8", "--"),
}
LAST = 5
"""Evaluations at the end of a run that count as its result."""


def read_runs(paths: list[Path]) -> dict[str, dict[str, dict[int, list[dict]]]]:
    """Metrics by task, algorithm and seed."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        config = json.loads((path / "run.json").read_text())["config"]
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        found[config["task"]][config["learner"]["algorithm"]][config["seed"]] = rows
    return found


def figure(runs: dict, path: Path) -> None:
    """One panel a task."""
    with plt.rc_context(STYLE):
        drawn, axes = plt.subplots(1, len(runs), figsize=(9.2, 3.4), constrained_layout=True)
        for axis, (task, algorithms) in zip(axes, runs.items(), strict=True):
            for name, (colour, line) in COLOURS.items():
                curves = [evaluations(rows, "return_sampled") for rows in algorithms[name].values()]
                steps, values = curves[0][0] / 1e6, np.stack([values for _, values in curves])
                mean = values.mean(axis=0)
                error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                axis.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.13, lw=0)
                axis.plot(steps, mean, line, color=colour, linewidth=1.6, label=name)
            axis.set_title(f"{task.split('-')[0].replace('BulletEnv', '')} ({len(curves)} seeds)")
            axis.set_xlabel("million environment steps")
            axis.set_ylabel("return")
            axis.grid(axis="y", linewidth=0.4, alpha=0.5)
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
        save(drawn, path)


def table(runs: dict) -> str:
    """Mean of the last evaluations of each seed; mean and standard error over seeds."""
    lines = [
        "| task | algorithm | return, sampled | each seed | return, mean action | distance of "
        "prototypes |",
        "|---|---|---|---|---|---|",
    ]
    for task, algorithms in runs.items():
        for name in COLOURS:
            seeds = algorithms[name]
            ends = [[r for r in seeds[s] if "return_sampled" in r][-LAST:] for s in sorted(seeds)]
            sampled = [np.mean([row["return_sampled"] for row in end]) for end in ends]
            mean = np.mean([[row["return_mean"] for row in end] for end in ends])
            error = np.std(sampled, ddof=1) / np.sqrt(len(sampled))
            away = [rows[-2].get("prototype_distance") for rows in seeds.values()]
            distance = "-" if None in away else f"{np.mean(away):.2f}"
            each = ", ".join(f"{one:.0f}" for one in sampled)
            lines.append(
                f"| {task} | {name} | {np.mean(sampled):.0f} ± {error:.0f} | {each} | {mean:.0f} "
                f"| {distance} |"
            )
    return "\n".join(lines)


def write_csv(runs: dict, path: Path) -> None:
    """Every evaluation of every run."""
    columns = ("return_sampled", "return_mean", "length_sampled")
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "algorithm", "seed", "iteration", *columns])
        for task, algorithms in runs.items():
            for name in COLOURS:
                for seed, rows in sorted(algorithms[name].items()):
                    for row in rows:
                        if "return_sampled" in row:
                            values = [f"{row[column]:.6g}" for column in columns]
                            writer.writerow([task, name, seed, row["iteration"], *values])


def main() -> None:
    """Write baselines.csv, .svg and .png beside this file; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    runs = read_runs(parser.parse_args().runs)
    write_csv(runs, HERE / "baselines.csv")
    figure(runs, HERE / "baselines")
    print(table(runs))


if __name__ == "__main__":
    main()
