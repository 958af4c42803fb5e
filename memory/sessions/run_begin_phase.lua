-- Notes that a phase runs as a task, which alone may write for it.
-- ARGV: fence, phase, task, run
-- Returns: 1: done; 0: the fence is lost, or there is no such phase
-- include run_calls
local known = phase_state(ARGV[2])
if not is_fenced(ARGV[1]) or not known then return 0 end
if known.status ~= 'pending' and known.task_id == ARGV[3] then return 1 end
local now = session_now()
local state = {status = 'running', run = tonumber(ARGV[4]), task_id = ARGV[3], since_ms = now, why = known.why}
state.late_ms = known.late_ms
redis.call('HSET', phases, ARGV[2], cjson.encode(state))
redis.call('HSET', tasks, ARGV[2], ARGV[3])
touch(session_ms(now))
return 1
