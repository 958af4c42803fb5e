"""Every function that makes a Redis key: taken from the stores, which say theirs in `memory/NOUN/keys.py`.

A key has one pair of braces, the cluster's hash tag; each part is checked or percent-escaped, so that none opens more.
"""

from typing import Literal

from tasklore.memory.budgets.keys import budget as budget
from tasklore.memory.concurrency.keys import places as places
from tasklore.memory.conversations.keys import conversation as conversation
from tasklore.memory.conversations.keys import notices as notices
from tasklore.memory.conversations.keys import user_conversations as user_conversations
from tasklore.memory.documents.keys import document as document
from tasklore.memory.documents.keys import document_log as document_log
from tasklore.memory.documents.keys import document_reads as document_reads
from tasklore.memory.documents.keys import documents_pattern as documents_pattern
from tasklore.memory.documents.keys import parse_plans as parse_plans
from tasklore.memory.documents.keys import plans as plans
from tasklore.memory.documents.keys import plans_pattern as plans_pattern
from tasklore.memory.episodes.keys import episodes as episodes
from tasklore.memory.holdings.keys import HOLDINGS as HOLDINGS
from tasklore.memory.key_parts import LongTermKey as LongTermKey
from tasklore.memory.key_parts import QueueKeys as QueueKeys
from tasklore.memory.key_parts import SessionKeys as SessionKeys
from tasklore.memory.ledger.keys import backlog as backlog
from tasklore.memory.ledger.keys import children as children
from tasklore.memory.ledger.keys import end_counts as end_counts
from tasklore.memory.ledger.keys import end_sums as end_sums
from tasklore.memory.ledger.keys import entry as entry
from tasklore.memory.ledger.keys import entry_report as entry_report
from tasklore.memory.ledger.keys import every_ended as every_ended
from tasklore.memory.ledger.keys import ledger_agents as ledger_agents
from tasklore.memory.ledger.keys import ledger_layout as ledger_layout
from tasklore.memory.ledger.keys import parse_task as parse_task
from tasklore.memory.ledger.keys import request as request
from tasklore.memory.ledger.keys import run_agents as run_agents
from tasklore.memory.ledger.keys import runs as runs
from tasklore.memory.ledger.keys import steps as steps
from tasklore.memory.ledger.keys import stream as stream
from tasklore.memory.ledger.keys import task as task
from tasklore.memory.ledger.keys import task_agent as task_agent
from tasklore.memory.ledger.keys import task_pattern as task_pattern
from tasklore.memory.ledger.keys import user_requests as user_requests
from tasklore.memory.long_term.keys import FLIGHTS as FLIGHTS
from tasklore.memory.long_term.keys import flight_of as flight_of
from tasklore.memory.long_term.keys import hits_of as hits_of
from tasklore.memory.long_term.keys import is_near as is_near
from tasklore.memory.long_term.keys import ltm as ltm
from tasklore.memory.long_term.keys import ltm_agents as ltm_agents
from tasklore.memory.long_term.keys import ltm_index as ltm_index
from tasklore.memory.long_term.keys import ltm_listed as ltm_listed
from tasklore.memory.long_term.keys import ltm_listing as ltm_listing
from tasklore.memory.long_term.keys import ltm_pattern as ltm_pattern
from tasklore.memory.long_term.keys import ltm_served as ltm_served
from tasklore.memory.long_term.keys import ltm_user_lists as ltm_user_lists
from tasklore.memory.long_term.keys import ltm_users as ltm_users
from tasklore.memory.long_term.keys import ltm_users_pattern as ltm_users_pattern
from tasklore.memory.long_term.keys import near as near
from tasklore.memory.long_term.keys import near_below as near_below
from tasklore.memory.long_term.keys import near_of as near_of
from tasklore.memory.long_term.keys import near_root as near_root
from tasklore.memory.long_term.keys import parse_ltm as parse_ltm
from tasklore.memory.long_term.keys import parse_ltm_users as parse_ltm_users
from tasklore.memory.long_term.keys import parse_quarantine as parse_quarantine
from tasklore.memory.long_term.keys import quarantine as quarantine
from tasklore.memory.long_term.keys import quarantine_pattern as quarantine_pattern
from tasklore.memory.projects.keys import project as project
from tasklore.memory.projects.keys import project_part as project_part
from tasklore.memory.queues.keys import owners as owners
from tasklore.memory.queues.keys import queue as queue
from tasklore.memory.run_messages.keys import MessageIndexKeys as MessageIndexKeys
from tasklore.memory.run_messages.keys import run_messages as run_messages
from tasklore.memory.run_messages.keys import run_messages_of as run_messages_of
from tasklore.memory.schedules.keys import schedule_books as schedule_books
from tasklore.memory.schedules.keys import schedules as schedules
from tasklore.memory.sessions.keys import run as run
from tasklore.memory.sessions.keys import run_hold as run_hold
from tasklore.memory.sessions.keys import run_makers as run_makers
from tasklore.memory.sessions.keys import running as running
from tasklore.memory.sessions.keys import session as session
from tasklore.memory.sessions.keys import session_flight as session_flight
from tasklore.memory.sessions.keys import user_sessions as user_sessions
from tasklore.memory.stories.keys import analysing as analysing
from tasklore.memory.stories.keys import story as story
from tasklore.memory.stories.keys import story_changes as story_changes
from tasklore.memory.tombstones.keys import late_rows as late_rows
from tasklore.memory.tombstones.keys import tombstone as tombstone
from tasklore.memory.webhooks.keys import WEBHOOKS as WEBHOOKS


def index(name: Literal["sessions", "projects", "stories", "waits"]) -> str:
    """Return the key that lists every session, project, story or open wait."""
    return f"tl:{name}:{{index}}"
