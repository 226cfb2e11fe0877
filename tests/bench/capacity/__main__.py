"""``make capacity``: what a fleet of a given size costs and where it saturates, from measured figures and a simulation.

Needs no network and no other machine. Change ``parameters.toml`` and run it again; ``--measure`` measures anew on this
machine first. ``--docs`` writes tables and picture to ``docs/capacity.md`` and ``docs/images/capacity.svg``.
"""

import argparse
import json
import math
import sys
import tomllib
from pathlib import Path

from .measure import PATH as MEASURED
from .measure import main as measure
from .simulation import Cores, Costs, Machine, a_day, shape, simulate

HERE = Path(__file__).parent
DOCS = Path(__file__).resolve().parents[3] / "docs"
MEASURED_CALLS = 3
GIB, DAY_S, DAYS, HOURS = 2**30, 86_400, 30, 730
WINDOW = (11.75, 12.25)
"""Hours that are simulated: the peak."""


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity", description=__doc__)
    parser.add_argument("--parameters", type=Path, default=HERE / "parameters.toml")
    parser.add_argument("--measure", action="store_true", help="measure again on this machine (five minutes)")
    parser.add_argument("--docs", action="store_true", help="write docs/capacity.md and its picture")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.measure and (failed := measure([])):
        return failed
    wanted = tomllib.loads(given.parameters.read_text())
    found = plan(wanted, json.loads(MEASURED.read_text()))
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        print(text(found))
    if given.docs:
        write_docs(found)
    return 0


# --- from measurements to costs -----------------------------------------------------------------------------


def mixed(measured, what):
    """A cost per run of a warm copy and of a cold one, solved from two measurements with different shares of both."""
    share = measured["warm"]["cold"]
    cold, most = measured["cold"]["run"][what], measured["warm"]["run"][what]
    warm = max(0.0, (most - share * cold) / (1 - share))
    return warm, max(cold, warm)


def costs_of(measured, calls):
    """The costs of a run with so many calls of the model."""
    worker, git = mixed(measured, "worker-0 cpu_s"), mixed(measured, "git cpu_s")
    split = {}
    for kind, name in enumerate(("warm", "cold")):
        times = {part: measured[name]["parts_ms"][f"{name}_{part}"] for part in ("fetch", "run", "push")}
        for part, took in times.items():
            split.setdefault(part, [0.0, 0.0])[kind] = worker[kind] * took / sum(times.values())
    grown = calls / MEASURED_CALLS
    idle = measured["warm"]["idle"]
    return Costs(
        fetch=tuple(split["fetch"]), run=tuple(one * grown for one in split["run"]), push=tuple(split["push"]),
        git_fetch=tuple(one - git[0] / 2 for one in git), git_push=git[0] / 2,
        database=measured["backlog"][0]["database_cpu_s"] + measured["warm"]["submission"]["database cpu_s"],
        first=max(0.0, measured["cold"]["first_ms"]) / 1000, look_s=0.06,
        poll=idle["database cpu_s"], idle=idle["worker-0 cpu_s"],
    )  # fmt: skip


def validate(measured):
    """Simulate what was measured with 1, 2 and 3 workers on one machine, and compare."""
    rows, cores = [], 2
    for row in measured["throughput"]:
        costs = costs_of(measured, MEASURED_CALLS)
        left = max(0.2, cores - row["cores_of_others"] - row["workers"] * (costs.idle + costs.poll))
        slower = cores / left
        for name in ("fetch", "run", "push", "git_fetch"):
            setattr(costs, name, tuple(one * slower for one in getattr(costs, name)))
        for name in ("git_push", "database", "first"):
            setattr(costs, name, getattr(costs, name) * slower)
        all_of_it = Cores(cores)
        machines = [Machine(all_of_it, row["slots"], 10**6) for _ in range(row["workers"])]
        each = round(row["runs"] / row["workspaces"])
        arrivals = [(0.0, name) for _ in range(each) for name in range(row["workspaces"])]
        day = simulate(arrivals, costs, machines, all_of_it, all_of_it, calls=1, model_s=0)
        simulated = day.runs / day.seconds
        rows.append(
            {
                "workers": row["workers"], "measured": row["runs_per_second"], "simulated": round(simulated, 2),
                "ratio": round(simulated / row["runs_per_second"], 2), "cores_of_others": row["cores_of_others"],
                "cold_measured": row["cold"], "cold_simulated": round(day.cold / day.runs, 2),
            }
        )  # fmt: skip
    return rows


# --- the plan -----------------------------------------------------------------------------------------------


def plan(wanted, measured):
    """Everything that the page says."""
    load, run, worker, price = wanted["load"], wanted["run"], wanted["worker"], wanted["price"]
    calls, costs = run["model_calls"], costs_of(measured, run["model_calls"])
    mean = load["runs_per_day"] / DAY_S
    peak = mean * load["peak"]
    process = max(1.0, measured["warm"]["busy_memory_bytes"] - measured["warm"]["idle_memory_bytes"])
    slots = int(
        (worker["memory_gib"] * GIB * worker["utilisation"] - measured["warm"]["idle_memory_bytes"]) / process
    )
    held_s = calls * run["model_s"] + costs.worker + costs.git + costs.database

    def workers_for(rate):
        by_cores = rate * costs.worker / (worker["cores"] * worker["utilisation"] - costs.idle)
        return by_cores, rate * held_s / slots

    by_cores, by_memory = workers_for(peak)
    count = math.ceil(max(by_cores, by_memory))
    trials = [
        trial(wanted, measured, costs, max(1, round(count * part)), slots)
        for part in (0.7, 0.8, 0.9, 1.0, 1.2)
    ]
    hours = [
        max(1, math.ceil(max(workers_for(mean * shape(hour + 0.5, load["peak"]))))) for hour in range(24)
    ]
    return {
        "wanted": wanted, "measured_on": {key: measured[key] for key in ("date", "machine")},
        "validation": validate(measured), "per_run": per_run(measured, costs), "backlog": measured["backlog"],
        "peak_runs_per_second": round(peak, 1), "slots": slots, "process_mib": round(process / 2**20),
        "workers": count, "workers_by_cores": round(by_cores, 1), "workers_by_memory": round(by_memory, 1),
        "workers_by_hour": hours, "trials": trials, "cost": prices(wanted, measured, hours, count, price),
        "saturation": saturation(wanted, measured, costs, max(by_cores, by_memory) / peak),
    }  # fmt: skip


def per_run(measured, costs):
    warm, repack = measured["warm"], measured["warm"]["repack"]
    runs = 3 * measured["runs"]
    return {
        "worker processor, warm (ms)": round(1000 * sum(mixed(measured, "worker-0 cpu_s")[:1])),
        "worker processor, cold (ms)": round(1000 * mixed(measured, "worker-0 cpu_s")[1]),
        "Git host processor, warm (ms)": round(1000 * costs.git, 1),
        "Git host processor, cold (ms)": round(1000 * (costs.git_fetch[1] + costs.git_push), 1),
        "database processor (ms)": round(1000 * costs.database, 1),
        "submission, processor of Git host and database (ms)": round(1000 * (warm["submission"]["git cpu_s"] + warm["submission"]["database cpu_s"]), 1),
        "wire to and from the Git host (KiB)": round(warm["run"]["git git bytes"] / 1024, 1),
        "wire to and from the database, with looks (KiB)": round(warm["run"]["database database bytes"] / 1024, 1),
        "remote on disk before a repack (KiB; files)": f"{warm['run']['remotes bytes'] / 1024:.0f}; {warm['run']['remotes files']:.0f}",
        "remote on disk after a repack (KiB)": round(repack["bytes_after"] / 1024 / runs, 1),
        "repack of a workspace of these runs, processor (s)": repack["cpu_s"],
        "worker's copy on disk (KiB)": round(warm["copy_bytes"] / 1024 / runs),
        "database on disk (KiB; rows)": f"{(warm['run']['database bytes'] + warm['submission']['database bytes']) / 1024:.1f}; {warm['submission']['rows kept'] + warm['run']['rows kept']:.1f}",
        "database log (KiB)": round((warm["run"]["wal bytes"] + warm["submission"]["wal bytes"]) / 1024, 1),
        "transactions of a submission": round(warm["submission"]["transactions"], 1),
        "idle worker: transactions per second": round(warm["idle"]["transactions"], 1),
        "idle worker: processor of the database (%)": round(100 * costs.poll, 1),
        "idle worker: its own processor (%)": round(100 * costs.idle, 1),
    }  # fmt: skip


def trial(wanted, measured, costs, count, slots):
    """Simulate half an hour around the peak with a number of workers whose copies are those of a day before."""
    load, run, worker = wanted["load"], wanted["run"], wanted["worker"]
    size = max(1.0, measured["warm"]["copy_bytes"])
    copies = int(worker["disk_gib"] * GIB / size)
    machines = [Machine(Cores(worker["cores"]), slots, copies) for _ in range(count)]
    before = a_day(load["workspaces"], load["runs_per_day"], load["peak"], load["skew"], seed=2)
    for place, (_, workspace) in enumerate(before):
        machines[place % count].has(workspace)
    git, database = Cores(wanted["git"]["cores"]), Cores(wanted["database"]["cores"])
    arrivals = a_day(load["workspaces"], load["runs_per_day"], load["peak"], load["skew"], hours=WINDOW)
    day = simulate(arrivals, costs, machines, git, database, calls=run["model_calls"], model_s=run["model_s"])
    late = [one for one in day.waits if one[0] > (WINDOW[0] + 0.1) * 3600]  # the fleet starts empty
    waits, own = sorted(one[1] for one in late), sorted(one[2] for one in late)
    seconds = (WINDOW[1] - WINDOW[0]) * 3600
    polls = count * costs.poll / database.count
    return {
        "workers": count, "runs": day.runs, "cold": round(day.cold / day.runs, 3),
        "wait_p50_s": round(at(waits, 0.5), 2), "wait_p95_s": round(at(waits, 0.95), 2), "wait_p99_s": round(at(waits, 0.99), 2),
        "own_p99_s": round(at(own, 0.99), 1), "overhead_p50_ms": round(1000 * at(sorted(day.overheads), 0.5)),
        "workers_busy": round(sum(one.cores.busy_s for one in machines) / (count * worker["cores"] * seconds), 2),
        "git_busy": round(git.busy_s / (git.count * seconds), 2),
        "database_busy": round(database.busy_s / (database.count * seconds) + polls, 2),
    }  # fmt: skip


def at(values, part):
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


def prices(wanted, measured, hours, count, price):
    """Dollars a day for each part, at the end of the first month."""
    runs = wanted["load"]["runs_per_day"]
    warm, repack = measured["warm"], measured["warm"]["repack"]
    each = 3 * measured["runs"]
    packed = repack["bytes_after"] / each * runs * DAYS / GIB
    loose = warm["run"]["remotes bytes"] * runs / GIB
    rows = (
        (warm["run"]["database bytes"] + warm["submission"]["database bytes"])
        * runs
        * wanted["load"]["days_kept"]
        / GIB
    )
    wire = (
        (
            warm["run"]["git git bytes"]
            + warm["run"]["database database bytes"]
            + warm["submission"]["git git bytes"]
        )
        * runs
        / GIB
    )

    def per_day(per_month):
        return per_month / DAYS

    store = wanted["object_store"]
    found = {
        "workers, as many as each hour needs": price["worker"]["per_hour"] * sum(hours),
        "workers' disks": per_day(price["disk"]["per_gib_month"] * wanted["worker"]["disk_gib"] * sum(hours) / 24),
        "Postgres": price["database"]["per_hour"] * 24,
        "Postgres' disk": per_day(price["database_disk"]["per_gib_month"] * rows),
        "Git host": price["git"]["per_hour"] * 24,
        "Git host's disk": per_day(price["disk"]["per_gib_month"] * (packed + loose)),
        "network": price["network"]["per_gib"] * 2 * wire,
        "object store": runs / 1000 * (store["writes_per_run"] * price["object_store"]["per_1000_writes"] + store["reads_per_run"] * price["object_store"]["per_1000_reads"])
        + per_day(price["object_store"]["per_gib_month"] * store["gib_per_10000_workspaces"] * wanted["load"]["workspaces"] / 10_000),
    }  # fmt: skip
    total = sum(found.values())
    return {
        "per_day": {name: round(value, 2) for name, value in found.items()}, "total_per_day": round(total, 2),
        "per_1000_runs": round(1000 * total / runs, 4), "total_per_month": round(total * HOURS / 24),
        "per_workspace_month": round(total * HOURS / 24 / wanted["load"]["workspaces"], 3),
        "more_if_all_workers_always_run": round(price["worker"]["per_hour"] * (24 * count - sum(hours)), 2),
        "git_gib_packed": round(packed), "git_gib_loose_per_day": round(loose), "database_gib": round(rows), "wire_gib_per_day": round(wire),
        "git_files_loose_per_day": round(warm["run"]["remotes files"] * runs),
        "repack_core_hours_per_night": round(wanted["load"]["workspaces"] * repack["cpu_s"] / 3600, 1),
    }  # fmt: skip


def saturation(wanted, measured, costs, workers_per_rate):
    """Runs a day at which each part is at 70 % of its processor in the busiest hour."""
    peak, most = wanted["load"]["peak"], 0.7
    submitting = measured["warm"]["submission"]
    database = wanted["database"]["cores"] * most / (costs.database + workers_per_rate * costs.poll)
    git = wanted["git"]["cores"] * most / (costs.git + submitting["git cpu_s"])
    wire = 10e9 / 8 * most / (measured["warm"]["run"]["git git bytes"] + submitting["git git bytes"])
    rate = {"Postgres, processor": database, "Git host, processor": git, "Git host, 10 Gbit/s": wire}
    return {name: {"peak_runs_per_second": round(value, 1), "runs_per_day": round(value * DAY_S / peak, -3)} for name, value in rate.items()}  # fmt: skip


# --- shown --------------------------------------------------------------------------------------------------


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(str(one) for one in row) + " |" for row in rows)])


def text(found):
    """The tables, in Markdown."""
    load, cost = found["wanted"]["load"], found["cost"]
    dates = sorted({str(one["date"]) for one in found["wanted"]["price"].values()})

    def share(value):
        return f"{100 * value:.0f} %"

    return "\n\n".join(
        [
            (f"Load: {load['workspaces']:,} workspaces, {load['runs_per_day']:,} runs a day, {found['peak_runs_per_second']} a "
            f"second at the peak; {found['wanted']['run']['model_calls']} model calls of {found['wanted']['run']['model_s']:g} s in each run."),
            table(
                ["part", "dollars a day"],
                [*((name, f"{value:,.2f}") for name, value in cost["per_day"].items()), ("**total**", f"**{cost['total_per_day']:,.2f}**")],
            ),
            (f"That is {cost['per_1000_runs']:.3f} dollars for 1,000 runs, {cost['total_per_month']:,} a month, "
            f"{cost['per_workspace_month']:.2f} a month for a workspace. Workers that all run day and night cost "
            f"{cost['more_if_all_workers_always_run']:,.2f} a day more. Prices of {', '.join(dates)}."),
            (f"Workers at the peak: {found['workers']} ({found['workers_by_cores']} by processor, {found['workers_by_memory']} by "
            f"memory: {found['slots']} runs at once on each, {found['process_mib']} MiB for a run)."),
            table(
                ["workers", "wait for a worker: median, 95 %, 99 % (s)", "wait for the workspace's run before: 99 % (s)", "overhead, median (ms)", "cold copies", "workers busy", "Git host busy", "Postgres busy"],
                [
                    (row["workers"], f"{row['wait_p50_s']}, {row['wait_p95_s']}, {row['wait_p99_s']}", row["own_p99_s"], row["overhead_p50_ms"], share(row["cold"]), share(row["workers_busy"]), share(row["git_busy"]), share(row["database_busy"]))
                    for row in found["trials"]
                ],
            ),
            table(
                ["saturates (70 % in the busiest hour)", "runs a second", "runs a day"],
                [(name, row["peak_runs_per_second"], f"{row['runs_per_day']:,.0f}") for name, row in found["saturation"].items()],
            ),
            table(
                ["grows", "by"],
                [
                    ("Git host, after a repack", f"{cost['git_gib_packed'] / DAYS:,.1f} GiB a day"),
                    ("Git host, before a repack", f"{cost['git_gib_loose_per_day']:,} GiB and {cost['git_files_loose_per_day']:,} files a day"),
                    ("repack of every workspace", f"{cost['repack_core_hours_per_night']} core hours"),
                    (f"Postgres, {load['days_kept']} days kept", f"{cost['database_gib']:,} GiB in all"),
                    ("wire", f"{cost['wire_gib_per_day']:,} GiB a day"),
                ],
            ),
            table(["measured, for each run", f"{found['measured_on']['date']}"], found["per_run"].items()),
            table(
                ["workspaces in the queue", "taken per second by one worker", "database processor for each (ms)", "transactions for each"],
                [(row["workspaces"], f"{row['taken_per_second']:.1f}", f"{1000 * row['database_cpu_s']:.1f}", f"{row['transactions']:.0f}") for row in found["backlog"]],
            ),
            table(
                ["workers on one machine of 2 cores", "measured runs per second", "simulated", "simulated / measured", "cores that other programs took"],
                [(row["workers"], row["measured"], row["simulated"], row["ratio"], row["cores_of_others"]) for row in found["validation"]],
            ),
        ]
    )  # fmt: skip


def write_docs(found):
    from .picture import draw

    draw(found, DOCS / "images" / "capacity.svg")
    page = DOCS / "capacity.md"
    start, end = "<!-- make capacity: start -->", "<!-- make capacity: end -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(f"{before}{start}\n\n{text(found)}\n\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    sys.exit(main())
