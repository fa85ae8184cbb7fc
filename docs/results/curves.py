"""Learning curves of some runs: a CSV of every evaluation, a figure, and a table in Markdown.

    python docs/results/curves.py RUN... --name training

One panel a task, one thin line a seed, the thick line their mean. Evaluations use sampled actions.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
COLUMNS = (
    "return_sampled",
    "return_mean",
    "discounted_sampled",
    "length_sampled",
    "distance_sampled",
    "return_batch",
)
BLUE, GREY = "#1f5fa8", "#8a8f98"
STYLE = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "moie",
}


def read_runs(paths: list[Path]) -> dict[tuple[str, int], dict[int, list[dict]]]:
    """Metrics of every run, by task and experts, then by seed."""
    found: dict = defaultdict(dict)
    for path in paths:
        config = json.loads((path / "run.json").read_text())["config"]
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        key = (config["task"], config["learner"]["policy"]["experts"])
        found[key][config["seed"]] = rows
    return found


def evaluations(rows: list[dict], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps learned from before, and a column, of the rows with an evaluation."""
    picked, before = [], 0
    for row in rows:
        if row.get(column) is not None and "return_sampled" in row:
            picked.append((row["steps"] if "kl" not in row else before, row[column]))
        before = row["steps"]
    steps, values = zip(*picked, strict=True)
    return np.asarray(steps), np.asarray(values, dtype=float)


def draw(axis, seeds: dict[int, list[dict]], column: str, title: str, label: str) -> None:
    """Every seed thin, their mean thick."""
    curves = []
    for seed in sorted(seeds):
        steps, values = evaluations(seeds[seed], column)
        axis.plot(steps / 1e6, values, color=GREY, linewidth=0.7, alpha=0.8)
        curves.append((steps, values))
    shared = min((steps for steps, _ in curves), key=len)
    mean = np.mean([values[: len(shared)] for _, values in curves], axis=0)
    axis.plot(shared / 1e6, mean, color=BLUE, linewidth=2)
    axis.set_title(title)
    axis.set_xlabel("million environment steps")
    axis.set_ylabel(label)
    axis.grid(axis="y", linewidth=0.4, alpha=0.5)


def figure(runs: dict, path: Path) -> None:
    """One panel a task; for Hopper also what tells hopping from standing."""
    panels = []
    for (task, experts), seeds in runs.items():
        name = f"{task.split('-')[0].replace('BulletEnv', '')}, {experts} experts"
        panels.append((seeds, "return_sampled", f"{name} ({len(seeds)} seeds)", "return"))
        if "Hopper" in task:
            panels.append((seeds, "discounted_sampled", f"{name}, discounted", "discounted return"))
            panels.append((seeds, "distance_sampled", f"{name}, distance", "metres an episode"))
    with plt.rc_context(STYLE):
        n_rows = -(-len(panels) // 3)
        grid = {"figsize": (9.2, 2.7 * n_rows), "constrained_layout": True, "squeeze": False}
        drawn, axes = plt.subplots(n_rows, 3, **grid)
        for axis, panel in zip(axes.flat, panels, strict=False):
            draw(axis, *panel)
            if panel[1] == "discounted_sampled":
                axis.axhline(90, color="black", linewidth=0.8, linestyle=":")
                axis.text(0.02, 92, "standing gives less", va="bottom", fontsize=7)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        axes.flat[0].plot([], [], color=GREY, linewidth=0.7, label="one seed")
        axes.flat[0].plot([], [], color=BLUE, linewidth=2, label="mean of the seeds")
        axes.flat[0].legend(frameon=False, fontsize=7.5, loc="lower right")
        save(drawn, path)


def save(drawn, path: Path) -> None:
    """For the page, and for those who can not see vectors."""
    drawn.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    drawn.savefig(path.with_suffix(".png"), dpi=160)


def table(runs: dict) -> str:
    """Mean of the last five evaluations of each seed, and over seeds."""
    lines = [
        "| task | experts | seed | iterations | return, sampled | return, mean action | best "
        "evaluation, sampled | discounted | distance [m] |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (task, experts), seeds in runs.items():
        all_seeds = []
        for seed in sorted(seeds):
            rows = [row for row in seeds[seed] if "return_sampled" in row]
            last = {c: np.mean([r[c] for r in rows[-5:]]) for c in COLUMNS[:5] if c in rows[-1]}
            best = max(row["return_sampled"] for row in rows)
            all_seeds.append((last, best))
            lines.append(_line(task, experts, seed, rows[-1]["iteration"], last, best))
        last = {c: np.mean([one[c] for one, _ in all_seeds]) for c in all_seeds[0][0]}
        spread = np.std([one["return_sampled"] for one, _ in all_seeds], ddof=1)
        error = spread / np.sqrt(len(all_seeds))
        best = float(np.mean([b for _, b in all_seeds]))
        lines.append(_line(task, experts, "**mean**", "", last, best, error))
    return "\n".join(lines)


def _line(task, experts, seed, iterations, last, best, error=None) -> str:
    sampled = f"{last['return_sampled']:.0f}" + ("" if error is None else f" ± {error:.0f}")
    distance = f"{last['distance_sampled']:.1f}" if "distance_sampled" in last else "-"
    return (
        f"| {task} | {experts} | {seed} | {iterations} | {sampled} | {last['return_mean']:.0f} "
        f"| {best:.0f} | {last['discounted_sampled']:.0f} | {distance} |"
    )


def write_csv(runs: dict, path: Path) -> None:
    """Every evaluation of every run."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "experts", "seed", "iteration", *COLUMNS])
        for (task, experts), seeds in runs.items():
            for seed in sorted(seeds):
                for row in seeds[seed]:
                    if "return_sampled" in row:
                        values = [row.get(c) for c in COLUMNS]
                        shown = ["" if v is None else f"{v:.6g}" for v in values]
                        writer.writerow([task, experts, seed, row["iteration"], *shown])


def main() -> None:
    """Write NAME.csv, NAME.svg and NAME.png beside this file; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--name", default="training")
    given = parser.parse_args()
    runs = read_runs(given.runs)
    write_csv(runs, HERE / f"{given.name}.csv")
    figure(runs, HERE / given.name)
    print(table(runs))


if __name__ == "__main__":
    main()
