-- Makes phases pending again and drops their entries.
-- ARGV: token, fence, restart, expected run, words of root and why
-- Returns: 1: done; 0: refused; -1: none
-- include run_calls
local known = redis.call('HMGET', root, 'pipeline', 'reset_by', 'run')
if not known[1] then return -1 end
if known[2] == ARGV[1] then return 1 end
local held = redis.call('HGET', lease, 'fence') or ''
if held ~= ARGV[2] or (ARGV[4] ~= '' and known[3] ~= ARGV[4]) then return 0 end
redis.call('HSET', root, 'reset_by', ARGV[1])
local whys = put_words(root, 5)
-- With another declaration there may be phases that were not known before.
local is_declared, reset = redis.call('HGET', root, 'pipeline') ~= known[1], {}
for at = whys + 1, whys + 2 * tonumber(ARGV[whys]), 2 do
  local phase = ARGV[at]
  local last = phase_state(phase)
  if last or is_declared then
    reset[phase] = true
    local run = last and last.run or 0
    redis.call('HSET', phases, phase, cjson.encode({status = 'pending', run = run, why = ARGV[at + 1]}))
    redis.call('HSET', tasks, phase, '')
    redis.call('HDEL', seen, phase)
  end
end
for _, key in ipairs(redis.call('HKEYS', entries)) do
  if reset[string.match(key, '^[^:]+') or ''] and string.sub(key, 1, 1) ~= ':' then
    redis.call('HDEL', entries, key, ':' .. key)
    redis.call('HDEL', hits, key)
  end
end
local replaced = redis.call('HGETALL', corrected)
for at = 1, #replaced, 2 do
  if reset[replaced[at + 1]] then redis.call('HDEL', corrected, replaced[at]) end
end
if ARGV[3] == '1' then
  redis.call('HSET', root, 'state', 'running')
  redis.call('HINCRBY', root, 'run', 1)
  redis.call('HSET', root, 'began_at', session_ms(session_now()))
  redis.call('HDEL', root, 'wish', 'error', 'lapses', 'claimed_by')
  redis.call('UNLINK', outcome)
end
touch()
return 1
