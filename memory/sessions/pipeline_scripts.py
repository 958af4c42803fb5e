"""The Lua of pipeline runs: each script touches one hash tag, that of a session or that of an index of running ones.

Each may be sent again when its reply was lost. KEYS of a session's scripts are the nine of `memory.keys.SessionKeys`
and then `memory.keys.run`.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| CREATE | the ten | token, 1 unless it may have ended, words of root, phases, corrected, seen | 1: made; 0: taken |
| READ_RUN | the ten | - | {root, phases, corrected, holder, fence}; {} when no pipeline runs here |
| CLAIM_RUN | the ten | holder, token, lease_ms, most lapses, then see below | {fence, until, supervisor} or see below |
| RENEW_RUN | the ten | holder, fence, lease_ms | {until, supervisor}; {}: lost |
| GIVE_BACK | the ten | holder, fence | {supervisor}; {}: was not yours |
| LOOK_AT_RUN | the ten | - | {1 when it runs, ms until which it is held or 0} |
| BEGIN_PHASE | the ten | fence, phase, task, run | 1: done; 0: the fence is lost, or there is no such phase |
| SETTLE_PHASE | the ten | fence, phase, task or nothing, state, corrected phase or nothing | 1: done; 0: not any more |
| RESET_PHASES | the ten | token, fence, restart, expected run, words of root and why | 1: done; 0: refused; -1: none |
| END_RUN | the ten | fence, state, 1 to keep it, outcome, keep_ms, error, its type | {supervisor, user}; {}: lost |
| WISH | the ten | reason | 1: noted; 0: it does not run |
| NOTE_SEEN | the ten | fence, phase, marks | 1: noted; 0: the fence is lost |
| NOTE_PROGRESS | the ten | fence | 1: noted; 0: the fence is lost |
| RUNNING_DUE | running | limit | sessions |
| MARK | an index | session, ms or nothing for now | nil |
| UNMARK | running | session, grace_ms or nothing | nil |

CLAIM_RUN returns {0, until, supervisor} while another holds the lease, {-1} when it does not run, and {-2, +inf,
supervisor} when it sets the run aside, for which it takes an error, its type, the outcome to tell, and the ms that all
is kept at least. That is so when *most lapses* holders in turn never gave their lease back, as counted in `lapses` of
the root, 0 to count none; the count begins anew with a settled phase, items that are done, ten minutes
under one lease, and a restart.

Words of a hash come as their number, then field and value in turns. A state is the JSON of a `PhaseState`; here its
times are filled in. In the hash `tasks` nothing, as a text, stands for "no task may write for this phase".

The index of running sessions has another tag. It is marked before a run begins to run, and a session in it that does
not run is taken out only after a grace, longer than any call takes, so that no run is forgotten, whoever dies between
two steps.
"""

from memory.scripts import register
from memory.sessions.scripts import CALLS, TOUCH

_RUN = (
    TOUCH
    + """
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
"""
)

CREATE = register(
    _RUN
    + """
if redis.call('EXISTS', root) == 1 then return redis.call('HGET', root, 'made_by') == ARGV[1] and 1 or 0 end
if ARGV[2] == '1' and redis.call('EXISTS', outcome) == 1 then return 0 end
redis.call('UNLINK', unpack(KEYS))
local now = session_ms(session_now())
redis.call('HSET', root, 'made_by', ARGV[1], 'created_at', now)
put_words(seen, put_words(corrected, put_words(phases, put_words(root, 3))))
touch(now)
return 1
""",
    "refuse",
)

READ_RUN = register(
    _RUN
    + """
if redis.call('HEXISTS', root, 'pipeline') == 0 then return {} end
local held = redis.call('HMGET', lease, 'holder', 'fence')
return {redis.call('HGETALL', root), redis.call('HGETALL', phases), redis.call('HGETALL', corrected),
  held[1] or '', held[2] or redis.call('HGET', root, 'fence') or '0'}
""",
    "finish",
)

CLAIM_RUN = register(
    _RUN
    + """
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
""",
    "refuse",
)

_HELD = """
local held = redis.call('HMGET', lease, 'holder', 'fence')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return {} end
"""

RENEW_RUN = register(
    _RUN
    + _HELD
    + """
redis.call('PEXPIRE', lease, ARGV[3])
if session_now() - tonumber(held[2]) / 1000 > 600000 then redis.call('HDEL', root, 'lapses') end
return {session_now() + tonumber(ARGV[3]), redis.call('HGET', root, 'supervisor_id')}
""",
    "finish",
)

GIVE_BACK = register(
    _RUN
    + "if redis.call('HGET', root, 'fence') == ARGV[2] then redis.call('HDEL', root, 'claimed_by') end"
    + _HELD
    + """
redis.call('UNLINK', lease)
return {redis.call('HGET', root, 'supervisor_id')}
""",
    "finish",
)

LOOK_AT_RUN = register(
    _RUN
    + """
local left = redis.call('PTTL', lease)
local until_ms = left == -2 and 0 or session_now() + math.max(1, left)
return {redis.call('HGET', root, 'state') == 'running' and 1 or 0, until_ms}
""",
    "finish",
)

BEGIN_PHASE = register(
    _RUN
    + """
local known = phase_state(ARGV[2])
if not is_fenced(ARGV[1]) or not known then return 0 end
if known.status ~= 'pending' and known.task_id == ARGV[3] then return 1 end
local now = session_now()
local state = {status = 'running', run = tonumber(ARGV[4]), task_id = ARGV[3], since_ms = now, why = known.why}
redis.call('HSET', phases, ARGV[2], cjson.encode(state))
redis.call('HSET', tasks, ARGV[2], ARGV[3])
touch(session_ms(now))
return 1
""",
    "refuse",
)

SETTLE_PHASE = register(
    _RUN
    + """
local known, state, now = phase_state(ARGV[2]), cjson.decode(ARGV[4]), session_now()
if not is_fenced(ARGV[1]) or not known then return 0 end
if ARGV[3] ~= '' and known.task_id ~= ARGV[3] then return 0 end
if known.status ~= 'pending' and known.status ~= 'running' then
  return (known.status == state.status and known.task_id == state.task_id) and 1 or 0
end
state.run, state.since_ms, state.ended_ms = math.max(state.run, known.run), known.since_ms, now
redis.call('HSET', phases, ARGV[2], cjson.encode(state))
redis.call('HSET', tasks, ARGV[2], '')
redis.call('HDEL', root, 'lapses')
if state.status == 'done' and ARGV[5] ~= '' then redis.call('HSET', corrected, ARGV[5], ARGV[2]) end
touch(session_ms(now))
return 1
""",
    "refuse",
)

RESET_PHASES = register(
    _RUN
    + """
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
""",
    "refuse",
)

END_RUN = register(
    _RUN
    + """
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
""",
    "finish",
)

WISH = register(
    _RUN
    + """
if redis.call('HGET', root, 'state') ~= 'running' then return 0 end
redis.call('HSETNX', root, 'wish', ARGV[1])
return 1
""",
    "finish",
)

NOTE_SEEN = register(
    _RUN
    + """
if not is_fenced(ARGV[1]) then return 0 end
redis.call('HSET', seen, ARGV[2], ARGV[3])
touch()
return 1
""",
    "refuse",
)

NOTE_PROGRESS = register(
    _RUN
    + """
if not is_fenced(ARGV[1]) then return 0 end
redis.call('HDEL', root, 'lapses')
return 1
""",
    "finish",
)

RUNNING_DUE = register(
    CALLS
    + """
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', session_ms(session_now()), 'LIMIT', 0, ARGV[1])
""",
    "read",
)

MARK = register(
    CALLS
    + """
redis.call('ZADD', KEYS[1], ARGV[2] ~= '' and ARGV[2] or session_ms(session_now()), ARGV[1])
return false
""",
    "refuse",
)

UNMARK = register(
    CALLS
    + """
local score, now = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0'), session_now()
if ARGV[2] == '' and score <= now then return false end
if ARGV[2] ~= '' and score > now - tonumber(ARGV[2]) then return false end
redis.call('ZREM', KEYS[1], ARGV[1])
return false
""",
    "finish",
)
