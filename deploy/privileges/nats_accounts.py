"""The roles as accounts of nats-server: one user a role, known by the public half of its nkey."""

from collections.abc import Iterable, Sequence

from deploy.privileges.roles import Role

#: The account that has every stream, and the one in which the server speaks of itself.
ACCOUNT, SYSTEM_ACCOUNT = "TASKLORE", "SYS"
#: Who may look at the server itself, and at nothing that is in it.
SYSTEM_USER = "sys"

_HEADING = """\
# Made by `python -m deploy.privileges`; change deploy/privileges/roles.py instead.
# The public half of each role's nkey comes from the environment: see deploy/credentials.py and docs/security.md.
# Nobody may answer wherever a request says (allow_responses): its sender could have it answer to JetStream's API.
"""


def key_variable(role: str) -> str:
    """Return the environment variable in which nats-server finds the public nkey of *role*."""
    return f"TASKLORE_NKEY_{role.upper().replace('-', '_')}"


def nats_accounts(roles: Sequence[Role]) -> str:
    """Return the configuration file.

    Raises:
        ValueError: two roles would share a variable.
    """
    variables = [key_variable(role.name) for role in roles]
    if len({*variables, key_variable(SYSTEM_USER)}) <= len(roles):
        msg = f"names of roles must differ in more than case, '-' and '_': {', '.join(role.name for role in roles)}"
        raise ValueError(msg)
    users = "\n".join(_user(role) for role in roles)
    return (
        f"{_HEADING}\nsystem_account: {SYSTEM_ACCOUNT}\n\naccounts {{\n"
        f"  {SYSTEM_ACCOUNT} {{\n    users: [{{nkey: ${key_variable(SYSTEM_USER)}}}]\n  }}\n"
        f"  {ACCOUNT} {{\n    jetstream: enabled\n    users: [\n{users}    ]\n  }}\n}}\n"
    )


def _user(role: Role) -> str:
    return (
        f"      # {role.name}: {role.purpose}\n"
        f"      {{\n        nkey: ${key_variable(role.name)}\n        permissions: {{\n"
        f"          publish: {{allow: [\n{_lines(role.publish)}          ]}}\n"
        f"          subscribe: {{allow: [\n{_lines(role.subscribe)}          ]}}\n"
        "        }\n      }\n"
    )


def _lines(subject_patterns: Iterable[str]) -> str:
    return "".join(f'            "{subject}"\n' for subject in subject_patterns)
