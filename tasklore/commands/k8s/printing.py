"""Manifests as text: YAML that a person reads, with what to do about it above."""

import re
from collections.abc import Sequence

import yaml

from tasklore.commands.k8s.pods import Manifest
from tasklore.commands.k8s.workers import (
    Wanted,
    bootstrap_manifests,
    worker_manifests,
    worker_name,
)
from tasklore.contracts.errors import ConfigurationError
from tasklore.workers.agent import Agent
from tasklore.workers.loading import load_agents


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """Return *manifests* as documents of one file, keys in the order in which they were written."""
    documents = (
        yaml.safe_dump(one, sort_keys=False, width=120, allow_unicode=True)
        for one in manifests
    )
    return "".join(f"---\n{document}" for document in documents)


def print_agent(wanted: Wanted) -> None:
    """Print everything that a worker for `wanted.references` needs in a cluster where the rest already runs."""
    print(agent_text(wanted), end="")


def agent_text(wanted: Wanted) -> str:
    """Return the manifests that `print_agent` prints.

    Raises:
        ConfigurationError: an agent cannot be loaded, or the image or namespace cannot be used; says what to do.
    """
    image = wanted.image
    name, _, tag = image.rpartition("/")[2].partition(":")
    # An image without a version would be another one tomorrow.
    if "@sha256:" not in image and (not name or tag in ("", "latest")):
        msg = f"--image {image!r} names no version; give it a tag other than 'latest', or a digest, as in greeter:1.0"
        raise ConfigurationError(msg)
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", wanted.namespace):
        msg = f"--namespace {wanted.namespace!r} is not a valid Kubernetes name; use up to 63 of a-z, 0-9 and '-'"
        raise ConfigurationError(msg)
    found = {
        agent.agent_id: agent
        for reference in wanted.references
        for agent in load_agents(reference)
    }
    agents = list(found.values())
    manifests = [
        *bootstrap_manifests(wanted, agents),
        *worker_manifests(wanted, agents),
    ]
    return _advice(wanted, agents) + as_yaml(manifests)


def _advice(wanted: Wanted, agents: Sequence[Agent]) -> str:
    names = ", ".join(agent.agent_id for agent in agents)
    copied = [
        reference.partition(":")[0]
        for reference in wanted.references
        if reference.startswith(".")
    ]
    name = worker_name(wanted, agents)
    user = f"worker-{name}"
    served = ",".join(agent.agent_id for agent in agents)
    lines = [
        f"A worker for {names}, beside what the folder k8s of Tasklore sets up. It is {user} at NATS and Valkey:",
        f"  python -m deploy.credentials DIR --worker {name}={served}",
        "  python -m deploy.credentials DIR --print-secrets | kubectl apply --server-side --filename -",
        f"give it a key, a password and rights: the secrets tasklore-nats-{user} and tasklore-valkey-{user}.",
        'Both servers read users at the start: restart them. See "An agent of your own" in docs/reference/deploy.md.',
    ]
    if copied:
        lines += [
            "Its image is ours with your code in it:",
            "  FROM tasklore",
            f"  COPY {' '.join(copied)} /app/",
        ]
    lines += [
        "A Job cannot be changed: delete an older one first, with",
        "  kubectl delete job --ignore-not-found",
    ]
    lines[-1] += (
        f" --namespace {wanted.namespace} -l tasklore.dev/bootstraps={agents[0].agent_id}"
    )
    return "".join(f"# {line}\n" for line in lines)
