-- Reads a part of the conversation.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: number before which or 0 for the end, count
-- Returns: {number of the first or 0 at the beginning, {body, ...}, gone}
-- include mend
local before, count, gone = tonumber(ARGV[1]), tonumber(ARGV[2]), total - left
local upto = before > 0 and math.min(before - 1, total) or total
local from = math.max(gone, upto - count)
if upto <= from then return {0, {}, gone} end
return {from > gone and from + 1 or 0, redis.call('LRANGE', SAID, from - gone, upto - gone - 1), gone}
