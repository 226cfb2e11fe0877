"""The picture of ``docs/capacity.md``."""

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from .simulation import shape

INK, BLUE, ORANGE, GREEN = "#37474f", "#1565c0", "#ef6c00", "#2e7d32"


def draw(found, path):
    """Draw the day, the wait at the peak, and how busy the shared hosts are at other loads."""
    plt.rcParams.update(
        {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "agentx", "axes.edgecolor": INK}
    )
    figure, (day, wait, busy) = plt.subplots(1, 3, figsize=(11, 3.3), constrained_layout=True)
    load = found["wanted"]["load"]
    hours = range(24)
    day.bar([hour + 0.5 for hour in hours], found["workers_by_hour"], width=0.9, color=BLUE, alpha=0.55)
    day.set(xlabel="hour of the day", ylabel="workers needed", title="Workers follow the load", xlim=(0, 24))
    rate = day.twinx()
    points = [hour / 4 for hour in range(97)]
    rate.plot(
        points, [load["runs_per_day"] / 86_400 * shape(hour, load["peak"]) for hour in points], color=ORANGE
    )
    rate.set_ylabel("runs a second", color=ORANGE)
    rate.set_ylim(bottom=0)

    trials = found["trials"]
    at = [row["workers"] for row in trials]
    for key, colour, name in (
        ("wait_p50_s", GREEN, "median"),
        ("wait_p95_s", BLUE, "95 %"),
        ("wait_p99_s", ORANGE, "99 %"),
    ):
        wait.plot(at, [row[key] for row in trials], marker="o", color=colour, label=name)
    wait.axvline(found["workers"], color=INK, linestyle=":", linewidth=1)
    wait.set(xlabel="workers", ylabel="seconds", title="Wait for a worker at the peak", yscale="log")
    wait.legend(frameon=False)

    full = {name: row["runs_per_day"] / 0.7e6 for name, row in found["saturation"].items()}
    most = 1.1 * sorted(full.values())[1]
    for (name, where), colour in zip(full.items(), (BLUE, ORANGE, GREEN), strict=True):
        busy.plot([0, most], [0, 100 * most / where], color=colour, label=name)
    busy.axhline(70, color=INK, linestyle=":", linewidth=1)
    busy.axvline(load["runs_per_day"] / 1e6, color=INK, linestyle="--", linewidth=1)
    busy.set(
        xlabel="million runs a day", ylabel="% busy in the busiest hour", title="One Postgres, one Git host"
    )
    busy.set(xlim=(0, most), ylim=(0, 100))
    busy.legend(frameon=True, framealpha=1, loc="lower right", fontsize=8, bbox_to_anchor=(1.0, 0.06))
    figure.savefig(path, metadata={"Date": None})
