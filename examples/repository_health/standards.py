"""What the project's standards demand, and whether the measured sizes and imports keep to it."""

from pydantic import BaseModel

from examples.repository_health.rules import rules_in
from examples.repository_health.shapes import (
    Breach,
    Imports,
    Rule,
    Sizes,
    Verdict,
)
from tasklore import Agent, Context, Field, GiveUp, Parameters

agent = Agent(
    "RepositoryStandardsAgent",
    description="Holds a repository to the standards of its project.",
)


class Standard(BaseModel):
    """A standard in force, as the project's memory has it."""

    id: str
    text: str
    tags: tuple[str, ...] = ()


class Measures(Parameters):
    """Measurements and the standards for them; `tag` names the records of the standards."""

    sizes: Sizes
    imports: Imports
    standards: tuple[Standard, ...] = Field(
        description="The standards in force, newest first."
    )
    tag: str = "code"


@agent.task(remember=False, in_words=False)
async def check_standards(measures: Measures, context: Context) -> Verdict:
    """Check measured sizes and imports against the standards that a project has recorded."""
    if not measures.standards:
        is_asked_in_a_session = context.assignment.session_id is not None
        raise GiveUp(
            _cure(
                measures.tag,
                await context.project.project_id() if is_asked_in_a_session else "ID",
            )
        )
    rules: list[Rule] = []
    unread: list[str] = []
    for standard in measures.standards:
        read = rules_in(standard.id, standard.text)
        rules += read
        if not read:
            unread.append(f"{standard.id}: {standard.text}")
    verdict = Verdict(
        standards=len(measures.standards),
        rules=rules,
        kept=[],
        breaches=[],
        unread=unread,
    )
    for rule in rules:
        found = found_against(rule, measures)
        if found is not None and found > (
            rule.limit if rule.kind == "import_cycles" else 0
        ):
            verdict.breaches.append(Breach(rule=rule, found=found))
        elif found is not None:
            verdict.kept.append(rule)
    return verdict


def found_against(rule: Rule, measures: Measures) -> int | None:
    """Return how many modules, functions or cycles *rule* speaks against; None when others check it."""
    if rule.kind == "module_lines":
        return measures.sizes.modules.over(rule.limit)
    if rule.kind == "function_lines":
        return measures.sizes.functions.over(rule.limit)
    if rule.kind == "import_cycles":
        return measures.imports.cycle_count
    return None


def _cure(tag: str, project: str) -> str:
    return (
        f"the project has no standard tagged {tag!r}, so that there is nothing to hold the code to; record one: "
        f'tasklore projects standard {project} "no module over 400 lines" --tag {tag}'
    )
