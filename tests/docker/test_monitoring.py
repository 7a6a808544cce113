"""The dashboard and the alert rules ask for metrics that the service exports; Prometheus itself answers."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.errors import ServiceError
from app.telemetry.metrics import STAGES
from tests.support.processes import PATIENCE_S
from tests.support.server import free_port, running, started

FOLDER = Path("docker/kubernetes/monitoring")
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
CASES = Path(__file__).with_name("alerts_test.yaml")
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SCRAPE = Path("docker/monitoring/scrape.yaml")
KEY = "right"
# With maps, and with a key and without its Redis
REPLICAS: list[dict[str, str]] = [{}, {"store": "redis://127.0.0.1:1", "api_keys": f"team={KEY}"}]
OF_TARGETS = {"namespace", "model", "pod"}  # labels that Prometheus adds, the second where there are several
KINDS = {kind.kind for kind in ServiceError.__subclasses__()}
VALUES = {"kind": KINDS, "outcome": KINDS | {"classified", "abandoned"}, "stage": set(STAGES)}


@pytest.fixture(scope="module")
def replicas() -> Iterator[list[str]]:
    """Addresses of two replicas in which everything has happened that they count."""
    picture = Path("docs/star.jpg").read_bytes()
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(headers={"X-API-Key": KEY}, timeout=PATIENCE_S))
        found = [stack.enter_context(running(**settings)).url for settings in REPLICAS]
        for base in found:
            for content in (picture, b"no image"):
                answer = client.post(f"{base}/classify", content=content).json()
                client.get(f"{base}{answer.get('results', [{}])[0].get('attention', '/attention/unknown')}")
        yield found


@pytest.fixture(scope="module")
def prometheus(need, replicas, tmp_path_factory) -> Iterator[httpx.Client]:
    """The API of a Prometheus that has read both replicas several times, as scrape.yaml says."""
    folder = tmp_path_factory.mktemp("prometheus")
    configuration = yaml.safe_load(SCRAPE.read_text())
    configuration["global"] = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
    configuration["scrape_configs"][0]["static_configs"][0]["targets"] = [
        base.removeprefix("http://") for base in replicas
    ]
    configuration["scrape_configs"][0]["authorization"] = {"credentials": KEY}
    (folder / "prometheus.yaml").write_text(json.dumps(configuration))
    port = free_port()
    options = {"config.file": f"{folder}/prometheus.yaml", "storage.tsdb.path": f"{folder}/data", "log.level": "error"}
    options["web.listen-address"] = f"127.0.0.1:{port}"
    command = [need("prometheus"), *(f"--{name}={value}" for name, value in options.items())]
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client,
        started(command, port=port, ready=partial(read_often, client)),
    ):
        yield client


def read_often(client: httpx.Client) -> bool:
    try:
        return len(ask(client, "count_over_time(vit_model_info[1m]) > 4")) == len(REPLICAS)
    except httpx.TransportError:
        return False


def ask(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/query", params={"query": query})
    return answer.json()["data"]["result"] if answer.is_success else []


def filled(query: str) -> str:
    """A query with the variables of the dashboard filled in as Grafana does it."""
    values = {"__rate_interval": "1m", "namespace": "vit-serve", "model": ".*", "pod": ".*", "datasource": "prometheus"}
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda name: values[name[1] or name[2]], query)


def test_a_query_of_the_dashboard_has_an_answer_with_the_labels_of_its_legend(prometheus):
    for panel in PANELS:
        for target in panel["targets"]:
            assert target["expr"].count("$model") == target["expr"].count("$namespace") > 0, panel["title"]
            answer = ask(prometheus, filled(target["expr"]))
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert answer, (panel["title"], target)
            assert all(named <= series["metric"].keys() for series in answer), (panel["title"], target)


def test_the_variables_of_the_dashboard_have_values(prometheus):
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()
            assert label in OF_TARGETS
            assert ask(prometheus, f"count by ({label}) ({filled(selector)})")


def test_the_configuration_of_prometheus_is_valid_and_the_alerts_fire_when_they_should(need, tmp_path):
    """promtool compares annotations too, which are plain text here."""
    rules = json.loads(json.dumps(RULES))
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert "{{" not in str(rule.pop("annotations", ""))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / CASES.name).write_text(CASES.read_text())
    configuration = SCRAPE.with_name("prometheus.yaml")
    for command in (["check", "config", configuration], ["test", "rules", tmp_path / CASES.name]):
        done = subprocess.run([need("promtool"), *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    for fires in (True, False):
        assert {case["alertname"] for case in cases if fires == bool(case.get("exp_alerts"))} == {
            alert["alert"] for alert in ALERTS
        }


def test_the_cases_of_the_alerts_are_of_series_that_the_service_exports(prometheus):
    for test in yaml.safe_load(CASES.read_text())["tests"]:
        for given in test["input_series"]:
            (family,) = text_string_to_metric_families(f"{given['series']} 1\n")
            (sample,) = family.samples
            exported = {label for series in ask(prometheus, sample.name) for label in series["metric"]}
            assert exported, given
            assert sample.labels.keys() - OF_TARGETS <= exported, given
            assert all(value in VALUES.get(label, {value}) for label, value in sample.labels.items()), given


def test_counters_of_alerts_exist_from_the_start(client):
    """The last two cases of alerts_test.yaml show why."""
    samples = [s for family in text_string_to_metric_families(client.get("/metrics").text) for s in family.samples]
    selected = [found for alert in ALERTS for found in re.findall(r"(vit_\w+_total)\{([^}]*)\}", alert["expr"])]
    assert len(selected) == 6
    for name, selector in selected:
        labels = re.findall(r'(\w+)=~?"([^"]*)"', selector)
        for values in product(*(alternatives.split("|") for _, alternatives in labels)):
            wanted = dict(zip((label for label, _ in labels), values, strict=True)).items()
            assert any(sample.name == name and wanted <= sample.labels.items() for sample in samples), (name, wanted)
    faults = {(s.labels["method"].lower(), s.labels["route"]) for s in samples if s.labels.get("status") == "500"}
    described = client.get("/openapi.json").json()["paths"]
    assert {(method, path) for path, methods in described.items() for method in methods} <= faults
