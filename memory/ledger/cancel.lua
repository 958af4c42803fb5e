-- Asks for the cancellation of a task.
-- KEYS: task
-- ARGV: generation or 0 for the newest, reason, keep_ms
-- Returns: the report, or {generation, state, assignment, what it waits for}
local key, generation = KEYS[1], tonumber(ARGV[1])
if generation == 0 then
  generation = 1
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local number = tonumber(string.match(field, '^[a-z_]+:(%d+)$') or '0')
    if number > generation then generation = number end
  end
end
local g = ':' .. string.format('%.0f', generation)
local found = redis.call('HMGET', key, 'report' .. g, 'state' .. g, 'assignment' .. g, 'waits_for' .. g)
if found[1] then return found[1] end
redis.call('HSETNX', key, 'cancel' .. g, ARGV[2])
redis.call('PEXPIRE', key, ARGV[3])
return {generation, found[2] or '', found[3] or '', found[4] or ''}
