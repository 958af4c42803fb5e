"""The Redis keys of documents of users."""

from tasklore.memory.key_parts import check_resource, check_token


def document(user_token: str, resource_id: str) -> str:
    """Return the key of one JSON memory document of a user; raises InvalidInput for a token or id that is none."""
    return f"{_documents(user_token)}:{check_resource(resource_id)}"


def document_log(user_token: str, resource_id: str) -> str:
    """Return the key of every edit of a document; same tag."""
    return f"{document(user_token, resource_id)}:log"


def plans(user_token: str) -> str:
    """Return the key of a user's applied plans by id; same tag as the documents."""
    return f"{_documents(user_token)}:plans"


def document_reads(user_token: str) -> str:
    """Return the key of when each place of a user's documents was last shown; same tag."""
    return f"{_documents(user_token)}:reads"


def documents_pattern(user_token: str) -> str:
    """Return the SCAN pattern of everything stored beside a user's documents."""
    return f"{_documents(user_token)}:*"


def plans_pattern() -> str:
    """Return the SCAN pattern of every user's plans."""
    return "tl:doc:{*}:plans"


def parse_plans(key: str) -> str:
    """Return the user token in a key made by `plans`."""
    return key[len("tl:doc:{") : -len("}:plans")]


def _documents(user_token: str) -> str:
    return f"tl:doc:{{{check_token(user_token)}}}"
