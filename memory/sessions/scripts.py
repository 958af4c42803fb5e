"""The Lua of sessions: each script touches one hash tag, that of a session or that of the list of sessions.

Each may be sent again when its reply was lost; only a use without a reader can then count twice. KEYS of a session's
scripts are the first eight of `memory.keys.SessionKeys`; DROP has all nine. What an entry is made of is told in
`memory.sessions.entries`. A key that holds another type is not ours: it is replaced, so that it stops nobody.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| CREATE | the nine | token, that of a load or nothing, created_ms and updated_ms or nothing, root | 1: made; 0: taken |
| READ_ROOT | root, entries | names of fields | {ms left or -1, stored entries, value or nil, ...} |
| GET | root, entries, hits, uses, corrected | `count`, `once` or `peek`, reader, keys | {see below or nil, ...} |
| SET | the eight | task or nothing, its phase or nothing, then see below | {`done`}; {`replaced`, phase, task} |
| DELETE | the eight | key | 1: removed; 0: there was none |
| INVALIDATE | the eight | phases | keys removed |
| CLEAR | the eight | - | how many entries were removed |
| CLEANUP | the eight | 1 to leave a running session alone | how many expired entries were removed |
| ENTRIES | the eight | - | {now_ms, phases, run began, {key, head, hits, phase that hides it or nothing}, ...} |
| LOAD | the eight | token, 1 to begin, ms to keep them, then key, body, head and hits of each | 1: done; 0: taken |
| DROP | the nine | 1 to drop a running one | {user, supervisor}; 0: it runs |
| LIST | sessions | session | its score |
| UNLIST | sessions | session, score, grace_ms | 1: taken out; 0: not there, or listed anew |
| LISTED | sessions | highest score, offset, count | {session, score, ...}, newest first |

Where there is no session they return nil, GET nothing for any key. GET finds {key, head, hits, body}; the key is that
of the phase that replaced the one asked for. SET takes of each entry its key, time to live in ms or nothing, 1 to leave
a living one as it is, head without numbers, and body. Phases of ENTRIES are {phase, state, ...}, the JSON of each;
its run began at nothing where no pipeline runs, at 0 where it is the first run, else in ms since 1970.
"""

from memory.scripts import register

#: Functions for every script; see `TOUCH`.
CALLS = """
local function session_now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function session_ms(number)
  return string.format('%.0f', number)
end

local function session_call(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, '^WRONGTYPE ') then redis.call('DEL', key) end
    reply = redis.call(command, key, ...)
  end
  return reply
end
"""

#: Functions for every script that changes a session; KEYS[1] to KEYS[8] are the first of `memory.keys.SessionKeys`.
#:
#:   session_now()      ms since 1970 by the server's clock, a number; session_ms(n) is a number as it is stored.
#:   session_call(command, key, ...)  redis.call, but a key that holds another type is removed first.
#:   session_mend()     removes those of the eight keys that hold another type, as everything that writes begins.
#:   touch(now)         the session was updated at *now*, as it is stored; nothing means now. All eight keys get its
#:                      time to live, or none while its state is 'running'. Call it last; the root has to exist.
TOUCH = (
    CALLS
    + """
local function session_mend()
  for at = 1, 8 do
    local kind = redis.call('TYPE', KEYS[at]).ok
    if kind ~= 'none' and kind ~= (at == 4 and 'set' or 'hash') then redis.call('DEL', KEYS[at]) end
  end
end

local function touch(now)
  redis.call('HSET', KEYS[1], 'updated_at', now or session_ms(session_now()))
  local told = redis.call('HMGET', KEYS[1], 'state', 'ttl_ms')
  for at = 1, 8 do
    if told[1] == 'running' then
      redis.call('PERSIST', KEYS[at])
    else
      redis.call('PEXPIRE', KEYS[at], told[2] or 3600000)
    end
  end
end
"""
)

_ENTRIES = """
local function expiry_of(head)
  return tonumber(string.match(head, '^(%d+):') or '1')
end

local function is_living(head, now)
  local expires = head and expiry_of(head)
  return expires and (expires == 0 or expires > now)
end

local function remove(key)
  redis.call('HDEL', KEYS[3], key)
  return redis.call('HDEL', KEYS[2], ':' .. key, key) > 0
end

local function keys_of_entries()
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if string.sub(field, 1, 1) ~= ':' then found[#found + 1] = field end
  end
  return found
end
"""

#: What every script that writes into a session begins with: without a root there is none.
_OPENED = (
    TOUCH
    + _ENTRIES
    + """
session_mend()
local known = redis.call('EXISTS', KEYS[1]) == 1
"""
)

CREATE = register(
    TOUCH
    + """
session_mend()
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('HGET', KEYS[1], 'made_by') == ARGV[1] and 1 or 0 end
if ARGV[2] ~= '' and redis.call('HGET', KEYS[3], ':loading') ~= ARGV[2] then return 0 end
for at = 2, 9 do
  if at > 3 or ARGV[2] == '' then redis.call('UNLINK', KEYS[at]) end
end
redis.call('HDEL', KEYS[3], ':loading')
local now = session_ms(session_now())
for at = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('HSET', KEYS[1], 'made_by', ARGV[1], 'created_at', ARGV[3] ~= '' and ARGV[3] or now)
touch(ARGV[4] ~= '' and ARGV[4] or now)
return 1
""",
    "refuse",
)

READ_ROOT = register(
    CALLS
    + """
local found = session_call('HMGET', KEYS[1], unpack(ARGV))
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return false end
return {left, math.floor(session_call('HLEN', KEYS[2]) / 2), unpack(found, 1, #ARGV)}
""",
    "finish",
)

GET = register(
    CALLS
    + _ENTRIES
    + """
local hits, uses, corrected = KEYS[3], KEYS[4], KEYS[5]
if not session_call('HGET', KEYS[1], 'session_id') then return {} end
local now, mode, reader = session_now(), ARGV[1], ARGV[2]

local function as_shown(key)
  local phase, rest = string.match(key, '^([^:]+)(:.*)$')
  local by = phase and session_call('HGET', corrected, phase)
  if not by then return key end
  local steps = 0
  while by and steps < 1000 do
    phase, steps = by, steps + 1
    by = redis.call('HGET', corrected, phase)
  end
  return phase .. rest
end

local function last_as_long_as_the_root(key)
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 then redis.call('PEXPIRE', key, left) end
end

local function count_use(key, head)
  if mode == 'once' then
    local number = string.match(head, '^%d+:%d+:(%d+):') or '0'
    if session_call('SADD', uses, number .. ':' .. reader) == 0 then return redis.call('HGET', hits, key) end
    if redis.call('SCARD', uses) == 1 then last_as_long_as_the_root(uses) end
  end
  local count = session_call('HINCRBY', hits, key, 1)
  if count == 1 then last_as_long_as_the_root(hits) end
  return count
end

local function look(key)
  key = as_shown(key)
  local found = session_call('HMGET', KEYS[2], ':' .. key, key)
  if not found[2] or not is_living(found[1], now) then return false end
  local count
  if mode == 'peek' then count = session_call('HGET', hits, key) else count = count_use(key, found[1]) end
  return {key, found[1], count or 0, found[2]}
end

local found = {}
for at = 3, #ARGV do found[at - 2] = look(ARGV[at]) end
return found
""",
    "refuse",
)

SET = register(
    _OPENED
    + """
if not known then return false end
local task, own = ARGV[1], ARGV[2]
if task ~= '' then
  local runs = redis.call('HEXISTS', KEYS[1], 'pipeline') == 1
  for at = 3, own ~= '' and 3 or #ARGV, 5 do
    local phase = own ~= '' and own or string.match(ARGV[at], '^[^:]+')
    local writer = redis.call('HGET', KEYS[6], phase) or (runs and '')
    if writer and writer ~= task then return {'replaced', phase, writer} end
  end
end
local now = session_now()
for at = 3, #ARGV, 5 do
  local key, ttl = ARGV[at], ARGV[at + 1]
  if ARGV[at + 2] ~= '1' or not is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then
    local number = redis.call('HINCRBY', KEYS[1], 'writes', 1)
    local expires = ttl ~= '' and session_ms(now + tonumber(ttl)) or '0'
    local head = expires .. ':' .. session_ms(now) .. ':' .. session_ms(number) .. ':' .. ARGV[at + 3]
    redis.call('HSET', KEYS[2], ':' .. key, head, key, ARGV[at + 4])
    redis.call('HDEL', KEYS[3], key)
  end
end
touch(session_ms(now))
return {'done'}
""",
    "refuse",
)

DELETE = register(
    _OPENED
    + """
if not known then return false end
local living = is_living(redis.call('HGET', KEYS[2], ':' .. ARGV[1]), session_now())
remove(ARGV[1])
touch()
return living and 1 or 0
""",
    "finish",
)

INVALIDATE = register(
    _OPENED
    + """
if not known then return false end
local phases, removed, now = {}, {}, session_now()
for _, phase in ipairs(ARGV) do
  phases[phase] = true
  if redis.call('HEXISTS', KEYS[6], phase) == 1 then redis.call('HSET', KEYS[6], phase, '') end
end
for _, key in ipairs(keys_of_entries()) do
  if phases[string.match(key, '^[^:]*')] then
    if is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then removed[#removed + 1] = key end
    remove(key)
  end
end
touch()
return removed
""",
    "finish",
)

CLEAR = register(
    _OPENED
    + """
if not known then return false end
local count, now = 0, session_now()
for _, key in ipairs(keys_of_entries()) do
  if is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then count = count + 1 end
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
touch()
return count
""",
    "finish",
)

CLEANUP = register(
    _OPENED
    + """
if not known or (ARGV[1] == '1' and redis.call('HGET', KEYS[1], 'state') == 'running') then return false end
local count, now = 0, session_now()
for _, key in ipairs(keys_of_entries()) do
  if not is_living(redis.call('HGET', KEYS[2], ':' .. key), now) then
    remove(key)
    count = count + 1
  end
end
return count
""",
    "finish",
)

ENTRIES = register(
    _OPENED
    + """
if not known then return false end
local now, replaced, replacing = session_now(), redis.call('HGETALL', KEYS[7]), {}
for at = 1, #replaced, 2 do replacing[replaced[at]] = replaced[at + 1] end
local run = redis.call('HMGET', KEYS[1], 'run', 'began_at')
local found = {session_ms(now), redis.call('HGETALL', KEYS[5]), run[1] and (run[2] or '0') or ''}
for _, key in ipairs(keys_of_entries()) do
  local head = redis.call('HGET', KEYS[2], ':' .. key)
  if is_living(head, now) then
    local by = replacing[string.match(key, '^[^:]*')] or ''
    found[#found + 1] = {key, head, redis.call('HGET', KEYS[3], key) or '0', by}
  end
end
return found
""",
    "finish",
)

LOAD = register(
    _OPENED
    + """
if known then return 0 end
if ARGV[2] == '1' then
  redis.call('UNLINK', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[3], ':loading', ARGV[1])
elseif redis.call('HGET', KEYS[3], ':loading') ~= ARGV[1] then
  return 0
end
for at = 4, #ARGV, 4 do
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1], ':' .. ARGV[at], ARGV[at + 2])
  if ARGV[at + 3] ~= '0' then redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 3]) end
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
""",
    "refuse",
)

DROP = register(
    CALLS
    + """
local told = session_call('HMGET', KEYS[1], 'state', 'user_id', 'supervisor_id')
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
if told[1] == 'running' and ARGV[1] ~= '1' then return 0 end
redis.call('UNLINK', unpack(KEYS))
return {told[2] or '', told[3] or ''}
""",
    "finish",
)

#: Sent before whatever makes a session, so that none can be there unlisted.
LIST = register(
    CALLS
    + """
local score = session_ms(session_now())
session_call('ZADD', KEYS[1], score, ARGV[1])
return score
""",
    "refuse",
)

UNLIST = register(
    CALLS
    + """
local score = session_call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
if tonumber(score) > session_now() - tonumber(ARGV[3]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
""",
    "finish",
)

LISTED = register(
    CALLS
    + """
return session_call('ZRANGE', KEYS[1], ARGV[1], '-inf', 'BYSCORE', 'REV', 'LIMIT', ARGV[2], ARGV[3], 'WITHSCORES')
""",
    "finish",
)
