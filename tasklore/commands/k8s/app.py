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
            help="The image that holds its code, with its version.",
        ),
    ],
    name: Annotated[
        str | None,
        Option(
            "--name",
            metavar="NAME",
            help="What the Deployment is called; by default as the agent.",
        ),
    ] = None,
    namespace: Annotated[
        str, Option("--namespace", metavar="NAMESPACE", help="Where the rest runs.")
    ] = "tasklore",
    slots: Annotated[
        int,
        Option(
            "--slots",
            metavar="N",
            min=1,
            max=4096,
            help="Tasks that one pod holds at once.",
        ),
    ] = 16,
    most: Annotated[
        int,
        Option(
            "--most",
            metavar="N",
            min=1,
            max=1000,
            help="Pods that there may be at most.",
        ),
    ] = 10,
    longest_s: Annotated[
        int,
        Option(
            "--longest-s",
            metavar="S",
            min=1,
            max=86_400,
            help="Seconds that the longest task takes: a pod waits for it.",
        ),
    ] = 300,
) -> None:
    """Print the manifests of a worker for agents of your own.

    That is a Job that makes what it reads, a Deployment with its account and configuration, and a ScaledObject that
    keeps no pod while nothing waits. The agent is loaded here, to see what it reads.
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
