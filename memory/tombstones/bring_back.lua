-- Brings hidden keys back with their own time to live; what came in their places since is put aside.
-- KEYS: tombstone, plans, leases of turns and facts, then of each: hidden key, the key it was, the one for what is put aside
-- ARGV: number of the tombstone, its record as it was read, resources as plans have them, record of what is put aside
--   without its first brace, until when what was said is hidden still or nothing, who brings it back, then of each ms since
--   1970 of its own end, -1 without one
-- Returns: {done, keys put aside, ...}; {moved}: the tombstone is not as it was read, or there are other documents
-- Every key that a user may have is named, so that nothing of later stands beside what comes back.
-- include own_ends
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {'moved'} end
if (redis.call('HGET', KEYS[2], '#resources') or '') ~= ARGV[3] then return {'moved'} end
local aside, listed = {}, {}
for at = 5, #KEYS, 3 do
  local own = tonumber(ARGV[7 + (at - 5) / 3])
  if redis.call('EXISTS', KEYS[at + 1]) == 1 then
    local later = end_of(KEYS[at + 1])
    redis.call('RENAME', KEYS[at + 1], KEYS[at + 2])
    end_at(KEYS[at + 2], -1)
    aside[#aside + 1] = KEYS[at + 2]
    listed[#listed + 1] = cjson.encode(KEYS[at + 1]) .. ':' .. string.format('%.0f', later)
  end
  if redis.call('EXISTS', KEYS[at]) == 1 then
    redis.call('RENAME', KEYS[at], KEYS[at + 1])
    end_at(KEYS[at + 1], own)
  end
end
redis.call('UNLINK', KEYS[3], KEYS[4])
redis.call('HDEL', KEYS[1], ARGV[1], '#until')
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], '#until', ARGV[5]) end
redis.call('HSET', KEYS[1], '#back', ARGV[6], 'aside', '{"held":{' .. table.concat(listed, ',') .. '},' .. ARGV[4])
redis.call('PERSIST', KEYS[1])
return {'done', unpack(aside)}
