-- Adds a message to the conversation.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: keep, keep_ms, id, body
-- Returns: 1: added; 0: known
-- include append
return finish(add(ARGV[3], ARGV[4]))
