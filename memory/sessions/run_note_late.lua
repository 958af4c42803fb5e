-- Notes that a phase is late; the first time counts.
-- ARGV: fence, phase
-- Returns: 1: noted; 0: the fence is lost
-- include run_calls
local known = phase_state(ARGV[2])
if not is_fenced(ARGV[1]) then return 0 end
if known and not known.late_ms and (known.status == 'pending' or known.status == 'running') then
  known.late_ms = session_now()
  redis.call('HSET', phases, ARGV[2], cjson.encode(known))
end
return 1
