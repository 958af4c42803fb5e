"""`tasklore k8s`: manifests for agents of your own, to be applied where Tasklore runs in Kubernetes."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, example, show_help_alone

_EXAMPLE = "tasklore k8s agent ./greeter.py --image registry.example/greeter:1.0 | kubectl apply -f -"

app = Typer(epilog=example(_EXAMPLE), **SETTLED)


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Print manifests for Kubernetes."""
    show_help_alone(context)


@app.command(cls=Command, epilog=example(_EXAMPLE))
def agent(
    references: Annotated[
        list[str],
        Argument(
            metavar="NAME",
            help="A module (my_agents.greeter), a file (./greeter.py), an installed agent.",
        ),
    ],
    image: Annotated[
        str,
        Option(
            "--image",
            metavar="IMAGE",
            help="The image with its code, with its version.",
        ),
    ],
    name: Annotated[
        str | None,
        Option(
            "--name",
            metavar="NAME",
            help="Name of the Deployment; default: that of the agent.",
        ),
    ] = None,
    namespace: Annotated[
        str, Option("--namespace", metavar="NAMESPACE", help="Namespace of Tasklore.")
    ] = "tasklore",
    slots: Annotated[
        int,
        Option(
            "--slots",
            metavar="N",
            min=1,
            max=4096,
            help="Concurrent tasks of one pod.",
        ),
    ] = 16,
    most: Annotated[
        int,
        Option(
            "--most",
            metavar="N",
            min=1,
            max=1000,
            help="Maximum number of pods.",
        ),
    ] = 10,
    longest_s: Annotated[
        int,
        Option(
            "--longest-s",
            metavar="S",
            min=1,
            max=86_400,
            help="Seconds that the longest task takes; a terminating pod waits for it.",
        ),
    ] = 300,
) -> None:
    """Print the manifests of a worker for agents of your own.

    Prints a Job that creates its consumers, a Deployment with its service account and
    configuration, and a ScaledObject that scales to zero while nothing waits. The agent
    is loaded here, to find its consumers.
    """
    from tasklore.commands.k8s.printing import print_agent
    from tasklore.commands.k8s.workers import Wanted

    print_agent(
        Wanted(
            references=tuple(references),
            image=image,
            name=name,
            namespace=namespace,
            slots=slots,
            most=most,
            longest_s=longest_s,
        )
    )
