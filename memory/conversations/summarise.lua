-- Stores a summary of what has left the window.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: keep, keep_ms, upto, text, removals or nothing
-- Returns: 1: kept; 0: less has left the window, more is summarised, or something was removed since *removals*
-- include append
local upto = tonumber(ARGV[3])
local count, summarised, removals = unpack(redis.call('HMGET', DIGEST, 'count', 'summarised', 'removals'))
if upto > tonumber(count or '0') or upto <= tonumber(summarised or '0') then return 0 end
if ARGV[5] ~= '' and ARGV[5] ~= (removals or '0') then return 0 end
redis.call('HSET', DIGEST, 'summary', ARGV[4], 'summarised', whole(upto))
return finish(1)
