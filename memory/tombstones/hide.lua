-- Hides keys of a user: each is renamed, and gone at the end of its own time or of the tombstone's.
-- KEYS: tombstone, plans, leases of turns and facts, then each key and the one that hides it
-- ARGV: number of the tombstone, for how many ms it lasts, ms since 1970 until which what was said is hidden, resources as
--   plans have them, record without its first brace
-- Returns: {done, how many were hidden}; {moved}: another number is due, or there are other documents
-- include own_ends
local number, ends_at = ARGV[1], now + tonumber(ARGV[2])
local last = tonumber(redis.call('HGET', KEYS[1], '#last') or '0')
if last ~= tonumber(number) - 1 then return {'moved'} end
if (redis.call('HGET', KEYS[2], '#resources') or '') ~= ARGV[4] then return {'moved'} end
local held = {}
for at = 5, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[at]) == 1 then
    local own = end_of(KEYS[at])
    held[#held + 1] = cjson.encode(KEYS[at]) .. ':' .. string.format('%.0f', own)
    redis.call('RENAME', KEYS[at], KEYS[at + 1])
    if own < 0 or own > ends_at then end_at(KEYS[at + 1], ends_at) end
  end
end
redis.call('UNLINK', KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], '#last', number, '#until', ARGV[3],
  number, '{"held":{' .. table.concat(held, ',') .. '},' .. ARGV[5])
redis.call('HDEL', KEYS[1], '#back')
end_at(KEYS[1], ends_at)
return {'done', #held}
