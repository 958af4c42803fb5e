"""The context of a run: what the host lends to a task, bound to one job and its slot."""

import functools
from collections.abc import Callable

from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunName
from tasklore.workers.agent import Agent
from tasklore.workers.context.context import Context
from tasklore.workers.context.effects import Effects
from tasklore.workers.context.recorder import open_recorder
from tasklore.workers.context.services import Services
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.run_slot import RunSlot


def context_maker(
    agent: Agent,
    services: Services,
    ledger: Ledger,
    worker_id: str,
) -> Callable[[Job, RunSlot], Context]:
    """Return a maker of the contexts in which tasks of *agent* run."""
    effects = Effects(ledger, worker_id)

    def make_context(job: Job, slot: RunSlot) -> Context:
        assignment = job.assignment
        if assignment.deadline != job.deadline:
            assignment = assignment.model_copy(update={"deadline": job.deadline})
        claim = functools.partial(effects.claim, job)
        run = RunName(assignment.named, job.generation, worker_id)
        return Context(
            job.task,
            assignment,
            services,
            settings=agent.settings,
            attempt=job.attempt,
            claim=claim,
            run=run,
            lend=slot.lent,
            park=slot.park,
            waited_for=job.waited_for,
            recorder=open_recorder(services.recording, assignment, run, job.attempt),
        )

    return make_context
