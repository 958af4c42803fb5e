"""`tasklore webhooks`: webhooks that wait to be delivered, or were given up."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone
from tasklore.commands.running import run

app = Typer(epilog=example("tasklore webhooks list"), **SETTLED)

WebhookId = Annotated[
    str,
    Argument(metavar="ID", help="An id of the list, which its receiver sees as well."),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See webhooks that were not delivered, send them again, or remove them."""
    show_help_alone(context)


@app.command("list", cls=Command, epilog=example("tasklore webhooks list --waiting"))
def list_some(
    waiting: Annotated[
        bool,
        Option(
            "--waiting",
            help="Those that wait to be sent, by host, instead of those that were given up.",
        ),
    ] = False,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=1000, help="At most so many.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List webhooks that were given up, the last ones first, or wait to be sent."""
    from tasklore.commands.webhooks.views import print_webhooks

    run(print_webhooks("waiting" if waiting else "failed", limit, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore webhooks show msg_0199c1d2"))
def show(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Show a webhook with its body: how often it was sent, what the last attempt met, and when the next one is."""
    from tasklore.commands.webhooks.views import print_webhook

    run(print_webhook(webhook_id, then="show", as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore webhooks retry msg_0199c1d2"))
def retry(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Send a webhook again at once, and as long as a new one: for a day."""
    from tasklore.commands.webhooks.views import print_webhook

    run(print_webhook(webhook_id, then="retry", as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore webhooks remove msg_0199c1d2"))
def remove(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Remove a webhook: it is not sent any more."""
    from tasklore.commands.webhooks.views import print_webhook

    run(print_webhook(webhook_id, then="remove", as_json=as_json))
