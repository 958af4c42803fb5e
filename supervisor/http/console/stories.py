"""Stories: their list, how one stands after its last response, and what agents found in its responses."""

from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.operations.analyses import (
    Analysis,
    AnalysisContext,
    show_analysis,
    show_context,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.stories import (
    delete_story,
    list_stories,
    show_story,
)

#: Responses that the page offers by their numbers, the newest.
_MOST_RESPONSES = 30


async def show(visit: Visit) -> RenderedPage:
    """Return a page of stories."""
    found = await visit.call(list_stories, after=visit.after)
    return RenderedPage(
        values={
            "stories": found.stories,
            "paging": visit.paging("stories", found.after),
        }
    )


async def show_one(visit: Visit) -> RenderedPage:
    """Return how a story stands, and the analysis of one response: the latest, or the one in the address.

    Raises:
        UnknownStory: there is none.
    """
    story_id = visit.path["story_id"]
    response = visit.number("response")
    standing = await visit.call(show_story, story_id)
    analysis: Analysis | None = None
    context: AnalysisContext | None = None
    missing = ""
    if visit.may(show_analysis):
        try:
            analysis = await visit.call(show_analysis, story_id, response=response)
            if analysis.document is not None:
                context = await visit.call(
                    show_context, story_id, response=analysis.response
                )
        except Refused as refused:
            if refused.problem.status >= 500:
                raise
            missing = str(refused)
    return RenderedPage(
        title=f"{standing.title} · story",
        values={
            "story": standing,
            "analysis": analysis,
            "context": context,
            "missing": missing,
            "responses": tuple(sorted(standing.responses)[-_MOST_RESPONSES:]),
            "here": address(f"stories/{story_id}", response=response),
            "may_delete": visit.may(delete_story),
        },
    )


async def delete(visit: Visit) -> Notice | RenderedPage:
    """Remove a story with its responses and analyses, once it was said what goes."""
    story_id = visit.one("story_id")
    if visit.one("sure") != "yes":
        tried = await visit.call(delete_story, story_id, dry_run=True)
        return ask_first(
            question=f"Remove {tried.title or story_id}?",
            explained="It cannot be undone. Its folder stays, from which it can be loaded as it began.",
            concerns=1,
            lines=[
                f"{tried.entities:,} entities",
                f"{tried.responses:,} responses",
                f"{tried.analyses:,} analyses",
            ],
            to="stories/delete",
            verb="Remove the story",
            kept=[("story_id", story_id)],
            back=visit.back("stories"),
            is_grave=True,
        )
    done = await visit.call(delete_story, story_id)
    return Notice(to=address("stories"), text=f"Removed: {done.title or story_id}.")


PAGE = ConsolePage(
    path="stories",
    title="Stories",
    operation=list_stories,
    show=show,
    template="stories.html",
    group="Memory",
    is_of_all=True,
)
STORY = ConsolePage(
    path="stories/{story_id}",
    title="Story",
    operation=show_story,
    show=show_one,
    template="story.html",
    actions=(FormAction(path="stories/delete", operation=delete_story, run=delete),),
)
