-- Ends a run and keeps its outcome.
-- ARGV: fence, state, 1 to keep it, outcome, keep_ms, error, its type
-- Returns: {supervisor, user}; {}: lost
-- include run_calls
if not is_fenced(ARGV[1]) then
  if redis.call('GET', outcome) ~= ARGV[4] then return {} end
  local state = redis.call('HGET', root, 'state')
  return (not state or state == ARGV[2]) and {'', ''} or {}
end
redis.call('SET', outcome, ARGV[4], 'PX', ARGV[5])
local known = redis.call('HMGET', root, 'supervisor_id', 'user_id')
if ARGV[3] ~= '1' then
  redis.call('UNLINK', root, entries, hits, uses, phases, tasks, corrected, seen, lease)
  return {known[1], known[2] or ''}
end
fail_run(ARGV[2], ARGV[6], ARGV[7])
return {known[1], known[2] or ''}
