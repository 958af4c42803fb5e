"""`tasklore config`: what holds here, and why."""

from dataclasses import asdict, replace

from runtime.servers.endpoints import FILE_NAME, masked_url, read_endpoints
from runtime.settings import Settings
from runtime.settings_table import Row, explain
from tasklore.places import endpoints_dir
from tasklore.render.screen import print_json, print_table


def print_settings(*, as_json: bool) -> None:
    """Print every setting; the servers that `endpoints.json` names count where no variable names one."""
    rows = [_completed(row) for row in explain(Settings.load())]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    print_table(("VARIABLE", "VALUE", "UNIT", "SOURCE"), [(row.env, row.value, row.unit, row.source) for row in rows])


def _completed(row: Row) -> Row:
    if row.source != "default" or row.name not in ("nats_url", "redis_url"):
        return row
    found = read_endpoints(endpoints_dir())
    url = None if found is None else (found.nats if row.name == "nats_url" else found.redis)
    return row if url is None else replace(row, value=masked_url(url), source=FILE_NAME)
