-- Replaces the last message that has this body.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: body, body in its place
-- Returns: 1: done; 0: it is not there
-- include mend
local at = redis.call('LPOS', SAID, ARGV[1], 'RANK', -1)
if not at then return 0 end
redis.call('LSET', SAID, at, ARGV[2])
return 1
