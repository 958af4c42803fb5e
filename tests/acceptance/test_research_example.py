"""The research example on real servers: HTTP, an MCP server, a scripted model, and a worker that dies over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.acceptance.external_program import outside
from tests.acceptance.system import ROOT, Served, System
from tests.agent_script import calling, number_of, results_of, streaming
from tests.llm_double import Asked, Canned, ScriptedLlm, dropped

EXAMPLE = str(ROOT / "examples" / "research" / "agents.py")
PAPERS = {"night": "Owls are nocturnal.", "dusk": "Nightjars are crepuscular."}
QUESTION = "When are birds active?"
KEY = "sk-test-0123456789"


class Quiet(SimpleHTTPRequestHandler):
    """Serves papers and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature is http.server's
        """Write nothing to the test's output."""


@contextmanager
def served_papers(folder: Path) -> Iterator[str]:
    """Serve the papers over HTTP; yield the address of their folder."""
    folder.mkdir()
    for name, text in PAPERS.items():
        (folder / name).write_text(text)
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def answer(asked: Asked) -> Canned:
    """Read a paper in three requests, and write in one."""
    if "Write a short report of the notes" in asked.system:
        assert asked.body["stream"]
        assert "Owls: active at night" in asked.user
        return streaming("Owls fly ", "at night, ", "nightjars at dusk.")
    number = number_of(asked)
    results = results_of(asked)
    if number == 0:
        return calling(("fetch", {"url": asked.user.rpartition(" ")[2]}))
    if number == 1:
        return calling(("look_up", {"term": results[0].rstrip(".").rpartition(" ")[2]}))
    title = results[0].partition(" ")[0]
    return calling(("final_result", {"title": title, "finding": results[1]}))


async def test_papers_are_read_with_tools_and_a_report_is_written_word_by_word(
    own_system: System,
) -> None:
    """The worker is killed over both papers, which are tasks of their own: each repeats a request at most."""
    workers: list[Served] = []

    def start_worker() -> None:
        settings = {
            "llm_base_url": model.base_url,
            "llm_model": "scripted",
            "llm_api_key": KEY,
            "ack_wait_s": 1,
        }
        workers.append(own_system.worker(EXAMPLE, **settings))

    def respond(asked: Asked) -> Canned:
        if len(model.requests) == 4 and len(workers) == 1:
            workers[0].kill()
            start_worker()
            return dropped()
        return answer(asked)

    with (
        served_papers(own_system.folder / "papers") as folder,
        ScriptedLlm(respond) as model,
    ):
        start_worker()
        async with outside(own_system.servers.nats_url) as program:
            parameters = {
                "question": QUESTION,
                "papers": [f"{folder}/{name}" for name in PAPERS],
            }
            report = await program.ask("ResearchAgent", "report", parameters)
    assert report["status"] == "completed", report["error"]
    text = "Owls fly at night, nightjars at dusk."
    assert report["result"] == {"text": text, "papers": ["Owls", "Nightjars"]}
    assert 7 < len(model.requests) <= 7 + len(PAPERS)
    assert {asked.headers["authorization"] for asked in model.requests} == {
        f"Bearer {KEY}"
    }
