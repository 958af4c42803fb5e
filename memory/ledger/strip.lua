-- Leaves of a task only how a generation ended, with a report that holds no words of a user, if it still has one.
-- KEYS: of entry.lua, and its children in layout 1 where that is read
-- ARGV: of entry.lua, generation, report or nothing, state
-- Returns: nil
-- include entry
-- include pointer
local g = ':' .. ARGV[1]
redis.call('HSET', key, 'state' .. g, ARGV[3])
local ended = redis.call('HGET', key, 'finished_at' .. g)
for _, field in ipairs(redis.call('HKEYS', key)) do
  local number = string.match(field, '^finished_at:(%d+)$')
  if pointer and number and number ~= ARGV[1] then redis.call('UNLINK', key .. ':report:' .. number) end
  if field ~= 'state' .. g then redis.call('HDEL', key, field) end
end
if pointer then
  redis.call('HSET', key, 'finished_at' .. g, ended or '0')
  local told = key .. ':report' .. g
  if ARGV[2] ~= '' then
    redis.call('SET', told, ARGV[2], 'KEEPTTL')
    if redis.call('PTTL', told) < 0 then redis.call('PEXPIRE', told, math.max(1, redis.call('PTTL', key))) end
  end
  -- A wish is in the words of a person.
  if wished then redis.call('SET', pointer, pointed .. '!' .. wished .. '!it was cancelled', 'KEEPTTL') end
else
  redis.call('HSET', key, 'report' .. g, ARGV[2])
end
redis.call('UNLINK', key .. ':steps', key .. ':results', pointer and key .. ':children' or KEYS[2])
return false
