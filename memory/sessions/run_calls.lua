-- Functions for every script of a run.
-- KEYS: the nine of `memory.keys.SessionKeys`, then `memory.keys.run`
-- Words of a hash come as their number, then field and value in turns. A state is the JSON of a `PhaseState`; its times are filled
-- in here. In the hash `tasks` an empty text stands for "no task may write for this phase".
-- include touch
local root, entries, hits, uses, phases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tasks, corrected, seen, lease, outcome = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
session_mend()

local function is_fenced(fence)
  return redis.call('HGET', lease, 'fence') == fence
end

local function phase_state(phase)
  local found = redis.call('HGET', phases, phase)
  return found and cjson.decode(found)
end

local function fail_run(state, error, kind)
  local all, now = redis.call('HGETALL', phases), session_now()
  for at = 1, #all, 2 do
    local known = cjson.decode(all[at + 1])
    if known.status == 'running' then
      known.status, known.ended_ms, known.error_type, known.error = 'failed', now, kind, error
      redis.call('HSET', phases, all[at], cjson.encode(known))
      redis.call('HSET', tasks, all[at], '')
    end
  end
  redis.call('HSET', root, 'state', state, 'error', error)
  redis.call('HDEL', root, 'wish', 'claimed_by')
  redis.call('UNLINK', lease)
  touch()
end

local function put_words(key, at)
  local last = at + 2 * tonumber(ARGV[at])
  for index = at + 1, last, 2 do redis.call('HSET', key, ARGV[index], ARGV[index + 1]) end
  return last + 1
end
