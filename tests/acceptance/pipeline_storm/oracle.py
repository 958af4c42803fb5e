"""What a run owes: who reads which entry, read out of the declaration by other means than the product's."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping

from tasklore.contracts.pipelines import Phase, Pipeline

_REFERENCE = re.compile(r"\$\{([a-z0-9_]+:[A-Za-z]+)")


def reads_of(phase: Phase) -> set[str]:
    """Return the keys that *phase* reads, each of them once however often it names it."""
    spelled = json.dumps([phase.parameters, phase.when])
    return {*_REFERENCE.findall(spelled), *phase.reads}


def hits_of(
    pipeline: Pipeline, skipped: Collection[str], corrected: Mapping[str, str]
) -> Counter[str]:
    """Return how often each entry is used in a run that left out *skipped*; *corrected* is who replaces whom.

    Whoever corrects a phase still reads what it wrote, and so does whoever runs before the correction.
    """
    order = [phase.name for phase in pipeline.phases]
    hits: Counter[str] = Counter()
    for phase in pipeline.phases:
        for key in reads_of(phase):
            owner, _, rest = key.partition(":")
            by = corrected.get(owner)
            is_later = by is not None and order.index(phase.name) > order.index(by)
            # A condition that does not hold was looked at all the same.
            if phase.name in skipped and key not in _REFERENCE.findall(
                phase.when or ""
            ):
                continue
            hits[f"{by if is_later else owner}:{rest}"] += 1
    return hits
