"""A real Prometheus for tests: it scrapes processes of the system every second, and has the rules that are shipped."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "rules"
#: Seconds to wait for a fact.
PATIENCE_S = 120.0


class Prometheus:
    """Runs in *folder* for a `with`, and asks each of *targets*, addresses such as `127.0.0.1:9464`."""

    def __init__(self, folder: Path, targets: Iterable[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._url = f"127.0.0.1:{_free_port()}"
        scraped = {
            "job_name": "tasklore",
            "sample_limit": 5000,
            "static_configs": [{"targets": sorted(targets)}],
        }
        config = {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": [str(RULES / "*.yml")],
            "scrape_configs": [scraped],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))

    def __enter__(self) -> Self:
        options = (
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={self._url}",
        )
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["prometheus", *options], cwd=self._folder, stdout=log, stderr=log
            )
        self.until(self._is_ready, "prometheus is ready")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def get(self, path: str, **query: str) -> Any:
        """Return the data of a page of its API."""
        url = f"http://{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
            return json.load(reply)["data"]

    def by(self, label: str, expr: str) -> dict[str, float]:
        """Return what *expr* is now, by *label*."""
        found = self.get("query", query=expr)["result"]
        return {one["metric"].get(label, ""): float(one["value"][1]) for one in found}

    def names(self) -> set[str]:
        """Return every name that was scraped or recorded, also of families that have no series yet."""
        kinds = {one["metric"]: one["type"] for one in self.get("targets/metadata")}
        endings = {"histogram": ("_bucket", "_sum", "_count")}
        without_series = {
            name + ending
            for name, kind in kinds.items()
            for ending in endings.get(kind, ("",))
        }
        return set(self.get("label/__name__/values")) | without_series

    def until(self, is_so: Any, what: str) -> None:
        """Return once *is_so* holds."""
        gives_up_at = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < gives_up_at, (
                f"not within {PATIENCE_S:.0f} s: {what}"
            )
            time.sleep(0.2)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            return (
                urllib.request.urlopen(f"http://{self._url}/-/ready", timeout=1).status
                == 200
            )
        except (urllib.error.URLError, OSError):
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
