-- Ends a run that waits: keeps what it waits for, and all that the task needs, for as long as the wait and keep_ms.
-- KEYS: of entry.lua, and its children in layout 1 where that is read
-- ARGV: of entry.lua, generation, token, wait_ms, due_ms, assignment, keep_ms, what readers are told that it waits for, then slot and
--   wait of each that is open, in order
-- Returns: 1: it waits; 2: an answer is there, so that it is due at once; 0: not that run
-- include end_run
-- include own
-- include now
redis.call('HINCRBY', key, 'excused' .. g, 1)
redis.call('HSET', key, 'state' .. g, 'waiting')
redis.call('HSET', key, 'waits_for' .. g, ARGV[7])
redis.call('HSETNX', key, 'assignment' .. g, ARGV[5])
local slots, answered = {ARGV[1], redis.call('HGET', key, 'attempts' .. g) or '0'}, false
for at = 8, #ARGV, 2 do
  local field = 'wait.' .. ARGV[at]
  redis.call('HSET', key, field, ARGV[at + 1])
  answered = answered or redis.call('HEXISTS', key, field .. '.answer') == 1
  slots[#slots + 1] = ARGV[at]
end
redis.call('HSET', key, 'open_waits', table.concat(slots, ' '))
if not answered then redis.call('HSET', key, 'due_at' .. g, string.format('%.0f', now + tonumber(ARGV[4]))) end
local keep_ms = tonumber(ARGV[3]) + tonumber(ARGV[6])
keep(keep_ms)
if not pointer then prolong(keep_ms, {KEYS[2]}) end
return answered and 2 or 1
