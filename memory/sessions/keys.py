"""The Redis keys of sessions and their runs."""

from tasklore.memory.key_parts import SessionKeys, check_name, check_token, escape


def session(session_id: str) -> SessionKeys:
    """Return the keys of the session *session_id*."""
    root = f"tl:session:{{{check_name(session_id, 'session id')}}}"
    return SessionKeys(root, *(f"{root}:{part}" for part in SessionKeys._fields[1:]))


def session_flight(session_id: str, entry_key: str) -> str:
    """Return the key of the lease under which the entry *entry_key* of a session is computed; same tag."""
    return f"tl:flight:{{{check_name(session_id, 'session id')}}}:{escape(entry_key, 'session key')}"


def running(supervisor_id: str) -> str:
    """Return the key that lists the sessions whose pipelines run for *supervisor_id*."""
    return f"tl:running:{{{check_name(supervisor_id, 'supervisor id')}}}"


def run_hold(session_id: str) -> str:
    """Return the field of `run_makers` that says why no phase of a run begins; no session id reads like it."""
    return f"{session_id} held"


def run_makers() -> str:
    """Return the key of who asked for each run that goes on: workers, who write sessions, have no access to it."""
    return "tl:running:{~makers}"


def run(session_id: str) -> str:
    """Return the key of the end of the run *session_id*."""
    return f"tl:run:{{{check_name(session_id, 'session id')}}}"


def user_sessions(user_token: str) -> str:
    """Return the key that lists the sessions started for a user."""
    return f"tl:user-sessions:{{{check_token(user_token)}}}"
