"""CPU time of making sense of words: amounts found, a sentence understood, a key built.

Sentences are our own; how often they are understood is measured by `benchmarks.understanding` on public tables.
"""

from collections.abc import Callable
from time import thread_time_ns

from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile, ratio
from tasklore.contracts.quantities.numerals import find_amounts
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import RuleInterpreter, Understood
from tasklore.workers.agents.budget import Budget, agent
from tasklore.workers.card import card_of

#: What is allowed, in milliseconds of CPU of the 99th percentile.
_AMOUNTS_MS = 1.0
_SENTENCE_MS = 5.0
_KEY_MS = 0.05
SENTENCES = (
    "Check my budget: limit 50000, spent 42000, history [5000, 7000, 8000, 6000]",
    "I have a budget of one hundred and ten thousand and spent 42.5k of it so far",
    "What's left of my $85,000 limit after spending twelve thousand five hundred?",
    "limit is 50k, sorry, 60k, and I spent not 42000 but 45000; earlier months were 5k, 6k and 7,5 k",
    "Half a lakh is the limit, of which three quarters of 10,000 euros are gone since March 2026",
    "On 5 May we drove 240 km in 2 hours 30 minutes, paid 49,99 euro for fuel and 12.5 % more than in 2025",
    "Who won the match yesterday, and will it rain in the mountains at the weekend?",
    "Please tell me a story about a sailor who lost his way and found an island where nobody counts anything",
)


async def measure(profile: Profile) -> list[Row]:
    """Return a row for each thing that happens to a sentence."""
    rounds = max(1, profile.recalls // len(SENTENCES))
    catalogue = Catalogue([card_of(agent)])
    interpreter = RuleInterpreter()
    plain = _times_ms(lambda text: text.lower().split(), rounds)
    found = _times_ms(find_amounts, rounds)
    understood = _times_ms(
        lambda text: interpreter.understand(text, catalogue=catalogue), rounds
    )
    keyed = _key_times_ms(interpreter, catalogue, profile.recalls)
    return [
        _row("amounts of a sentence", found, _AMOUNTS_MS, plain),
        _row("a sentence by rules, one agent", understood, _SENTENCE_MS, plain),
        _row("a key of its parameters", keyed, _KEY_MS, plain),
    ]


def _row(what: str, times: list[float], allowed_ms: float, plain: list[float]) -> Row:
    p50 = percentile(times, 0.5)
    p99 = percentile(times, 0.99)
    return Row(
        what,
        cpu_us=1000 * sum(times) / len(times),
        p50_ms=p50,
        p99_ms=p99,
        compared=f"p99 {ratio(p99, allowed_ms)} the {allowed_ms} ms allowed; p50 {ratio(p50, percentile(plain, 0.5))} "
        "text.lower().split()",
        how=f"CPU time of the thread, {len(times):,} times",
    )


def _times_ms(read: Callable[[str], object], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        for text in SENTENCES:
            started = thread_time_ns()
            read(text)
            times.append((thread_time_ns() - started) / 1e6)
    return times[len(SENTENCES) :]


def _key_times_ms(
    interpreter: RuleInterpreter, catalogue: Catalogue, count: int
) -> list[float]:
    found = interpreter.understand(SENTENCES[0], catalogue=catalogue)
    if not isinstance(found, Understood):
        raise TypeError(f"{SENTENCES[0]!r} should be understood, not {found!r}")
    times = []
    for _ in range(count):
        # Read anew: whatever an instance keeps of its own key must not count.
        parameters = Budget.read(found.task.parameters)
        started = thread_time_ns()
        parameters.key(found.task.name)
        times.append((thread_time_ns() - started) / 1e6)
    return times
