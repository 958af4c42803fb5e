"""`tasklore config`: the settings that hold here, and their sources."""

from dataclasses import asdict, replace

from tasklore.commands.endpoints import endpoints_dir
from tasklore.commands.render.screen import print_json, print_table
from tasklore.runtime.servers.endpoints import FILE_NAME, masked_url, read_endpoints
from tasklore.runtime.settings import Settings
from tasklore.runtime.settings_table import explain


def print_settings(*, as_json: bool) -> None:
    """Print every setting; the servers that `endpoints.json` names count where no variable names one."""
    found = read_endpoints(endpoints_dir())
    urls = {} if found is None else {"nats_url": found.nats, "redis_url": found.redis}
    rows = [
        replace(row, value=masked_url(url), source=FILE_NAME)
        if row.source == "default" and (url := urls.get(row.name)) is not None
        else row
        for row in explain(Settings.load())
    ]
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        columns = ("VARIABLE", "VALUE", "UNIT", "SOURCE")
        print_table(
            columns, [(row.env, row.value, row.unit, row.source) for row in rows]
        )
