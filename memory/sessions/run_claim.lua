-- Leases a run under a new fence, or sets it aside.
-- ARGV: holder, token, lease_ms, most lapses, then of a run that is set aside error, its type, outcome, ms to keep it at least
-- Returns: {fence, until, supervisor}; {0, until, supervisor} while another holds the lease, {-1} when it does not run, {-2, +inf,
--   supervisor} when it is set aside: *most lapses* holders in turn never gave their lease back, as counted in `lapses` of the root, 0
--   to count none; the count begins anew with a settled phase, items that are done, ten minutes under one lease, and a restart
-- include run_calls
local known, now = redis.call('HMGET', root, 'state', 'fence', 'claimed_by'), session_now()
if known[1] ~= 'running' then return {-1} end
local held = redis.call('HMGET', lease, 'token', 'fence')
local supervisor = redis.call('HGET', root, 'supervisor_id')
if held[1] and held[1] ~= ARGV[2] then return {0, now + redis.call('PTTL', lease), supervisor} end
local has_lapsed = ARGV[4] ~= '0' and not held[1] and known[3] and known[3] ~= ARGV[1]
if has_lapsed and redis.call('HINCRBY', root, 'lapses', 1) >= tonumber(ARGV[4]) then
  fail_run('failed', ARGV[5], ARGV[6])
  redis.call('SET', outcome, ARGV[7], 'PX', ARGV[8])
  for at = 1, 8 do redis.call('PEXPIRE', KEYS[at], ARGV[8], 'GT') end
  return {-2, '+inf', supervisor}
end
-- In microseconds, which no two claims share: a session of this id may have been there before.
local time = redis.call('TIME')
local fence = held[2] or session_ms(math.max(tonumber(known[2] or '0') + 1, time[1] * 1000000 + time[2]))
redis.call('HSET', lease, 'holder', ARGV[1], 'token', ARGV[2], 'fence', fence)
redis.call('PEXPIRE', lease, ARGV[3])
redis.call('HSET', root, 'fence', fence, 'claimed_by', ARGV[1])
return {tonumber(fence), now + tonumber(ARGV[3]), supervisor}
