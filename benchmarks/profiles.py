"""How much is measured: the full profile, and a short one for a quick look."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Numbers of everything that is repeated.

    `rounds` are throughput runs of each contestant; `questions` are asked one at a time a turn; `peer_tasks` exclude
    their warm-up of a fifth; `commands` are starts of each command of the front door; `edits` are of one large
    document, `commits` of small ones, `said` are turns published, `facts` are worked on by one memory worker.
    """

    rounds: int
    warm_up: int
    tasks: int
    questions: int
    slow_questions: int
    recalls: int
    peer_tasks: int
    peer_questions: int
    commands: int
    edits: int
    commits: int
    said: int
    facts: int


FULL = Profile(
    rounds=3,
    warm_up=2_000,
    tasks=20_000,
    questions=500,
    slow_questions=40,
    recalls=3_000,
    peer_tasks=4_000,
    peer_questions=200,
    commands=5,
    edits=1_000,
    commits=16_000,
    said=1_000,
    facts=6_000,
)
SHORT = Profile(
    rounds=1,
    warm_up=500,
    tasks=5_000,
    questions=100,
    slow_questions=10,
    recalls=500,
    peer_tasks=1_000,
    peer_questions=50,
    commands=2,
    edits=200,
    commits=3_200,
    said=200,
    facts=1_500,
)
