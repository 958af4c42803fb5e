"""The Redis keys of remembered results."""

import re
from functools import lru_cache

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.key_parts import LongTermKey, check_name, check_token

#: The channel on which single flights that others wait for are announced.
FLIGHTS = "tl:flights"
_LTM = "tl:ltm:"
_NEAR = ":near:"
_NEAR_UNTIL = ":until"
_INDEX = "tl:ltm-index:"
_FLIGHT = "tl:flight:"
_QUARANTINE = "tl:ltm-quarantine:"
_VERSION = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")
_ENTRY = re.compile(
    r"tl:ltm:\{([A-Za-z0-9_-]{1,64})\}:v([^:]+):(?:u:([A-Za-z0-9_-]+):)?(.+)\Z",
    re.DOTALL,
)


def ltm(
    agent_id: str, version: str, question: str, user_token: str | None = None
) -> str:
    """Return the key of the answer to *question*, a `Parameters.key(task_name)`, shared or of one user.

    *version* is agent version, dot, task version, digest of the code and perhaps a settings fingerprint
    (`1.1-9f3c2a17+3fa9c01d`); a leading `v` is the same.

    Raises:
        InvalidInput: the agent id, version or token has characters that could act as a delimiter.
    """
    prefix = _entry_prefix(agent_id, version, user_token)
    question = question.replace("{", "%7B").replace("}", "%7D")
    # A task called "u" must not read as the mark of a user's entry.
    if question.startswith("u:"):
        question = "%75" + question[1:]
    return prefix + question


@lru_cache(maxsize=1024)
def _entry_prefix(agent_id: str, version: str, user_token: str | None) -> str:
    if not _VERSION.match(number := version.removeprefix("v")):
        raise InvalidInput(
            f"version {version!r} must be 1 to 64 letters, digits, '.', '+', '_' or '-'"
        )
    shared = f"{_LTM}{{{check_name(agent_id)}}}:v{number}:"
    return shared if user_token is None else f"{shared}u:{check_token(user_token)}:"


def parse_ltm(key: str) -> LongTermKey | None:
    """Return the parts of a key made by `ltm`, or None when *key* is not one."""
    match = _ENTRY.match(key)
    if match is None:
        return None
    agent_id, version, token, question = match.groups()
    if question.startswith("%75:"):
        question = "u" + question[3:]
    return LongTermKey(agent_id, version, token, question)


def ltm_pattern(agent_id: str | None = None) -> str:
    """Return the SCAN pattern of every remembered entry, of one agent when given."""
    return (
        f"{_LTM}{{{check_name(agent_id)}}}:*" if agent_id is not None else f"{_LTM}{{*"
    )


def hits_of(entry_key: str) -> str:
    """Return the key that counts how often *entry_key* was served; same tag."""
    return "tl:ltm-hits:" + entry_key[len(_LTM) :]


def near(entry_key: str, frame: str, fields: int = 1) -> tuple[str, ...]:
    """Return the keys that tell which entries may be near to *entry_key*; same tag.

    By the first value, by expiry, and then by every further one of the values of *fields*. *frame* is that of a
    `tasklore.contracts.parameters.neighbours.Neighbourhood`. Entries of one version and user share them.
    """
    return near_below(near_of(entry_key) + check_name(frame, "frame"), fields)


def near_below(root: str, fields: int) -> tuple[str, ...]:
    """Return the keys that `near` makes of so many *fields*, of which the first is *root*."""
    return (
        root,
        root + _NEAR_UNTIL,
        *(f"{root}:{number}" for number in range(2, fields + 1)),
    )


def near_root(key: str) -> str | None:
    """Return the first of the keys that `near` makes when *key* is the one by expiry, None for any other."""
    is_by_expiry = is_near(key) and key.endswith(_NEAR_UNTIL)
    return key.removesuffix(_NEAR_UNTIL) if is_by_expiry else None


def near_of(entry_key: str) -> str:
    """Return how every key that `near` makes for *entry_key* begins; raises InvalidInput for a key of another kind."""
    parts = parse_ltm(entry_key)
    if parts is None:
        raise InvalidInput(
            f"{entry_key!r} is not a long-term memory key; make it with `tasklore.memory.keys.ltm`"
        )
    whose = f"u:{parts.user_token}:" if parts.user_token is not None else ""
    return f"{_LTM}{{{parts.agent_id}}}{_NEAR}v{parts.version}:{whose}"


def is_near(key: str) -> bool:
    """Return whether *key* was made by `near`."""
    return key.startswith(_LTM) and key.partition("}")[2].startswith(_NEAR)


def ltm_listing(entry_key: str) -> tuple[str, str]:
    """Return the key of the index that lists *entry_key*, or a key of `near`, and its member there; same tag."""
    end = entry_key.index("}") + 1
    return _INDEX + entry_key[len(_LTM) : end], entry_key[end + 1 :]


def ltm_index(agent_id: str) -> str:
    """Return the key of the index of an agent's entries."""
    return f"{_INDEX}{{{check_name(agent_id)}}}"


def ltm_listed(index: str, member: str) -> str:
    """Return the key that *member* of the index *index* stands for."""
    return f"{_LTM}{index[len(_INDEX) :]}:{member}"


def ltm_agents() -> str:
    """Return the key of the agents that have such an index, or a quarantine."""
    return "tl:ltm-agents:{all}"


def ltm_user_lists() -> str:
    """Return the key that lists the tokens of users that have a list of entries; no token reads like its tag."""
    return "tl:ltm-users:{~all}"


def flight_of(entry_key: str) -> str:
    """Return the key of the lease under which the answer at *entry_key* is computed; same tag."""
    return _FLIGHT + entry_key[len(_LTM) :]


def ltm_users(user_token: str) -> str:
    """Return the key that lists which entries a user's tasks stored."""
    return f"tl:ltm-users:{{{check_token(user_token)}}}"


def ltm_served(user_token: str) -> str:
    """Return the key that counts how often a user was served the entries that their own tasks stored; same tag."""
    return f"tl:ltm-served:{{{check_token(user_token)}}}"


def ltm_users_pattern() -> str:
    """Return the SCAN pattern of every user's list of entries, and of the list of those lists."""
    return "tl:ltm-users:{*"


def parse_ltm_users(key: str) -> str:
    """Return the token in a key made by `ltm_users`."""
    return key[len("tl:ltm-users:{") : -1]


def quarantine(agent_id: str) -> str:
    """Return the key of an agent's imported entries that are never served."""
    return f"{_QUARANTINE}{{{check_name(agent_id)}}}"


def quarantine_pattern() -> str:
    """Return the SCAN pattern of every agent's quarantine."""
    return f"{_QUARANTINE}{{*"


def parse_quarantine(key: str) -> str:
    """Return the agent id in a key made by `quarantine`."""
    return key[len(_QUARANTINE) + 1 : -1]
