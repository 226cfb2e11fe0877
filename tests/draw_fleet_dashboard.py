"""Write docs/fleet-dashboard.json, the Grafana dashboard of a fleet.

python -m tests.draw_fleet_dashboard
"""

import json
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "docs" / "fleet-dashboard.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}
OF = 'agentx_fleet_tenant=~"$tenant"'
WIDTH = 24


def quantile(share, metric, by):
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({metric}_bucket{{{OF}}}[$__rate_interval])))"


def rate(metric, by):
    return f"sum by ({by}) (rate({metric}{{{OF}}}[$__rate_interval]))"


# Gauges of the whole fleet are reported by every worker, so their largest value counts, not their sum.
ROWS = [
    (
        4,
        [
            ("stat", "Waiting", "short", [(f'max(agentx_fleet_queue_depth{{{OF}, agentx_fleet_status="queued"}})', "waiting")], 4),
            ("stat", "At work", "short", [(f'max(agentx_fleet_queue_depth{{{OF}, agentx_fleet_status="running"}})', "at work")], 4),
            ("stat", "Workers alive", "short", [(f'max(agentx_fleet_workers{{{OF}, agentx_fleet_status="alive"}})', "alive")], 4),
            ("stat", "Workers lost", "short", [(f'max(agentx_fleet_workers{{{OF}, agentx_fleet_status="lost"}})', "lost")], 4),
            ("stat", "Set aside", "short", [(f"max(agentx_fleet_stranded{{{OF}}})", "set aside")], 4),
            ("stat", "Cost in 24 hours", "currencyUSD", [(f"sum(increase(agentx_fleet_cost_total{{{OF}}}[24h]))", "cost")], 4),
        ],
    ),
    (
        8,
        [
            ("timeseries", "The queue", "short", [(f"max by (agentx_fleet_status) (agentx_fleet_queue_depth{{{OF}}})", "{{agentx_fleet_status}}")], 12),
            ("timeseries", "Attempts per second, by how they ended", "ops", [(rate("agentx_fleet_runs_total", "agentx_fleet_status"), "{{agentx_fleet_status}}")], 12),
        ],
    ),
    (
        8,
        [
            ("timeseries", "Time of an attempt", "s", [(quantile(share, "agentx_fleet_run_duration_seconds", "agentx_fleet_status"), f"{{{{agentx_fleet_status}}}} p{int(100 * share)}") for share in (0.5, 0.95)], 12),
            ("timeseries", "Time of each part, 95 of 100", "s", [(quantile(0.95, "agentx_fleet_part_duration_seconds", "agentx_fleet_part"), "{{agentx_fleet_part}}")], 12),
        ],
    ),
    (
        8,
        [
            ("timeseries", "Tokens per second", "short", [(rate("gen_ai_client_token_usage_sum", "gen_ai_request_model, gen_ai_token_type"), "{{gen_ai_request_model}} {{gen_ai_token_type}}")], 8),
            ("timeseries", "Cost per hour", "currencyUSD", [("3600 * " + rate("agentx_fleet_cost_total", "gen_ai_request_model"), "{{gen_ai_request_model}}")], 8),
            ("timeseries", "Time of a call of a model, 95 of 100", "s", [(quantile(0.95, "gen_ai_client_operation_duration_seconds", "gen_ai_request_model"), "{{gen_ai_request_model}}")], 8),
        ],
    ),
    (
        8,
        [
            ("timeseries", "Taken over, and tries to reach a remote", "short", [(f"sum(increase(agentx_fleet_takeovers_total{{{OF}}}[$__rate_interval]))", "taken over"), (f"sum(increase(agentx_fleet_remote_retries_total{{{OF}}}[$__rate_interval]))", "tries")], 8),
            ("timeseries", "Resident processes", "short", [(f"sum by (instance) (agentx_fleet_residents{{{OF}}})", "{{instance}}")], 8),
            ("timeseries", "Their memory", "bytes", [(f"sum by (instance) (agentx_fleet_residents_memory_bytes{{{OF}}})", "{{instance}}")], 8),
        ],
    ),
]  # fmt: skip


def panel(number, place, about):
    kind, title, unit, queries, _ = about
    return {
        "id": number,
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if kind == "timeseries" else {"colorMode": "value", "graphMode": "area"},
        "targets": [
            {"refId": chr(65 + index), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(queries)
        ],
    }  # fmt: skip


def dashboard():
    panels, y = [], 0
    for height, row in ROWS:
        x = 0
        for about in row:
            panels.append(panel(len(panels) + 1, {"x": x, "y": y, "w": about[-1], "h": height}, about))
            x += about[-1]
        y += height
    return {
        "uid": "agentx-fleet",
        "title": "AgentX fleet",
        "tags": ["agentx"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
                {
                    "name": "tenant", "label": "Tenant", "type": "query", "datasource": SOURCE, "includeAll": True, "multi": True, "refresh": 2,
                    "allValue": ".*", "query": {"query": "label_values(agentx_fleet_runs_total, agentx_fleet_tenant)", "refId": "tenant"},
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": panels,
    }  # fmt: skip


def text():
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), "utf-8")
    print(f"{PLACE.name}: {PLACE.stat().st_size:,} bytes")
