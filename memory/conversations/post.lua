-- Puts a message into the inbox.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: keep, keep_ms, id, body
-- Returns: 1: it waits; 0: known
-- include append
local is_new = not redis.call('ZSCORE', IDS, ARGV[3])
if is_new then
  redis.call('ZADD', IDS, '+inf', ARGV[3])
  if redis.call('RPUSH', INBOX, ARGV[3], ARGV[4]) > 2 * keep then
    -- Nobody takes: what is bounded is the conversation.
    local id = redis.call('LPOP', INBOX)
    put(id, redis.call('LPOP', INBOX))
  end
end
return finish(is_new and 1 or 0)
