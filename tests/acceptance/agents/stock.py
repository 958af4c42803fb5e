"""An agent of pages: it looks up an article, and fails at one that is closed and at one that there is not."""

from tasklore import Agent, GiveUp, Parameters

agent = Agent("StockAgent", keywords=("stock",))


class Article(Parameters):
    """An article of the shop."""

    article: str


@agent.task(max_attempts=1)
async def look_up(article: Article) -> int:
    """Return how many there are."""
    if article.article == "unicorn":
        raise GiveUp("the shop has no unicorns; remove the line")
    if article.article == "lamp":
        raise ConnectionRefusedError("the warehouse does not answer")
    return 7
