-- Notes the end of a phase.
-- ARGV: fence, phase, task or nothing, state, corrected phase or nothing
-- Returns: 1: done; 0: not any more
-- include run_calls
local known, state, now = phase_state(ARGV[2]), cjson.decode(ARGV[4]), session_now()
if not is_fenced(ARGV[1]) or not known then return 0 end
if ARGV[3] ~= '' and known.task_id ~= ARGV[3] then return 0 end
if known.status ~= 'pending' and known.status ~= 'running' then
  return (known.status == state.status and known.task_id == state.task_id) and 1 or 0
end
state.run, state.since_ms, state.late_ms = math.max(state.run, known.run), known.since_ms, known.late_ms
state.ended_ms = now
redis.call('HSET', phases, ARGV[2], cjson.encode(state))
redis.call('HSET', tasks, ARGV[2], '')
redis.call('HDEL', root, 'lapses')
if state.status == 'done' and ARGV[5] ~= '' then redis.call('HSET', corrected, ARGV[5], ARGV[2]) end
touch(session_ms(now))
return 1
