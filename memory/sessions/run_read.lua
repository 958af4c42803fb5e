-- Reads a run and its lease.
-- Returns: {root, phases, corrected, holder, fence}; {} when no pipeline runs here
-- include run_calls
if redis.call('HEXISTS', root, 'pipeline') == 0 then return {} end
local held = redis.call('HMGET', lease, 'holder', 'fence')
return {redis.call('HGETALL', root), redis.call('HGETALL', phases), redis.call('HGETALL', corrected),
  held[1] or '', held[2] or redis.call('HGET', root, 'fence') or '0'}
