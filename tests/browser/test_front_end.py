"""A page of another origin asks the API: with a key by fetch, and by a token with an EventSource."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page

from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.system import AGENTS, System, running_system
from tests.answer_texts import TEXTS
from tests.browser.conftest import Window

pytestmark = pytest.mark.browser

SECRET = "0123456789abcdef0123456789abcdef"
#: Markdown with line breaks of Windows, and emoji of several characters.
NUMBERS = (18, 21)
PAGE = """
async ([api, key, number]) => {
  const asked = async (path, body) => {
    const headers = {"Authorization": `Bearer ${key}`, "Content-Type": "application/json"};
    const answer = await fetch(api + path, {method: "POST", headers, body: JSON.stringify(body)});
    return [answer.status, await answer.json()];
  };
  const chat = await asked("/v1/chat/completions", {
    model: "LetterAgent", messages: [{role: "user", content: `write the letter number ${number}`}],
  });
  const [, task] = await asked("/v1/tasks", {
    agent_id: "LetterAgent", task: "write", parameters: {number, told: true}, wait_seconds: 0,
  });
  const [status, made] = await asked("/v1/stream-tokens", {path: `/v1/tasks/${task.task_id}/output`});
  const told = await new Promise((done, failed) => {
    let text = "";
    const stream = new EventSource(api + made.url);
    stream.addEventListener("text", (event) => { text += JSON.parse(event.data).text; });
    stream.addEventListener("done", () => { stream.close(); done(text); });
    stream.onerror = () => failed(new Error(`cut off, ${stream.readyState}`));
  });
  const refused = await fetch(api + "/v1/nothing", {headers: {"Authorization": `Bearer ${key}`}});
  const unknown = await fetch(api + "/v1/models");
  return {
    answer: chat[1].choices[0].message.content, told, status,
    refused: refused.status, unknown: unknown.status,
  };
}
"""


@contextmanager
def elsewhere(folder: Path) -> Iterator[str]:
    """Serve an empty page at an origin of its own, and yield that."""
    (folder / "index.html").write_text("<!doctype html><title>Front end</title>")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run servers, before the browser has a loop of its own."""
    with running_system(tmp_path_factory.mktemp("system")) as found:
        yield found


def test_a_page_of_another_origin_asks_and_listens(
    system: System, window: Window, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    key = make_key(file, "page", ("ask",), "ana")
    pages = tmp_path / "pages"
    pages.mkdir()
    with elsewhere(pages) as origin:
        system.worker(str(AGENTS / "letters.py")).ready()
        served = system.supervisor(
            api_keys_file=file,
            api_cors_origins=origin,
            approval_secret=SECRET,
            log_level="debug",
        ).ready()
        served.await_agents(1)
        page: Page = window.page
        page.goto(origin)
        for number in NUMBERS:
            found = page.evaluate(PAGE, [served.api, key, number])
            assert found == {
                "answer": TEXTS[number],
                "told": TEXTS[number],
                "status": 200,
                "refused": 404,
                "unknown": 401,
            }
        assert "stream_token=" not in served.log()
        # A page of any other origin reads nothing.
        page.goto(origin.replace("localhost", "127.0.0.1"))
        with pytest.raises(Error, match="Failed to fetch"):
            page.evaluate(PAGE, [served.api, key, NUMBERS[0]])
