"""The Lua of the waiting rows: each script touches one hash tag, that of a user or that of an index of owners.

Each may be sent again when its reply was lost. KEYS of a user's scripts are the six of `memory.keys.QueueKeys`.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| APPEND_ROWS | the six | keep_ms, trace or nothing, id, body, id, body, ... | how many were new |
| CLAIM_ROWS | the six | holder, token, limit, lease_ms, now_ms | {look, fence, then six of each row: see `Row`} |
| RENEW_CLAIM | the six | holder, fence, lease_ms | 1: still held; 0: lost |
| RELEASE_CLAIM | the six | holder, fence | {look}; {} when it was lost |
| CLOSE | the six | `memory.queues.claims.closing_arguments` | 1: done; 0: the claim was lost |
| NOTE_ROW | the six | holder, fence, id, note | 1: noted; 0: the claim was lost, or the row is not waiting |
| RESUME_ROWS | the six | state, limit | how many came back into the order |
| LOOK | the six | - | {look, number of the first row or 0} |
| READ_ROWS | the six | limit | {id, number or ms, body, state, note, ...} |
| OWNERS_DUE | owners | now_ms, limit | tokens of owners |
| MARK_OWNER | owners | token | nil |
| SETTLE_OWNER | owners | token, score seen or nothing, look | 1: settled; 0: somebody marked it meanwhile |

A look says from when it pays to claim: 0 at once, -1 never since nothing waits, PARKED never until rows are resumed,
else ms since 1970 when a lease ends or the first row is due.

The hash `state` holds `s:{id}`, the JSON of what became of a row; `n:{id}`, its note, and `t:{id}`, its trace,
until it is closed; `c:{outcome}`, how many closed rows there are; and `open`, which rows the last claim took, until it
is given back: whoever claims next and finds it knows that those runs ended without a word. Rows are numbered by the
microsecond of their arrival, each above the one before; leases are numbered alike, so that no number comes again, even
after everything of a user was forgotten.
"""

from memory.scripts import register

#: Added to the number of a row that left the order: above any number (microseconds since 1970) until 2112, and small
#: enough that the sum is still exact in a double. As the score of an owner: nothing waits but parked rows.
PARKED = 2**52


_PARKED = f"local PARKED = {PARKED}"

#: Functions for a script that closes rows in the same step as it does something else to the same user.
#:
#: KEYS[k] to KEYS[k + 5] are `queues.claims.Claim.keys`; ARGV[a] and on are `queues.claims.closing_arguments`, of any
#: length, so that they are best put last. `k` and `a` are for the script to choose.
#:
#:   lease_held(k, a)  true while the claim holds: check it first, and write nothing when it is false.
#:   close_rows(k, a)  closes the rows and returns how many were still waiting; a repeat of it changes nothing.
CLOSE_ROWS = (
    _PARKED
    + """
local function server_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function server_ms()
  return math.floor(server_us() / 1000)
end

local function lease_held(k, a)
  local held = redis.call('HMGET', KEYS[k + 4], 'holder', 'fence')
  return held[1] == ARGV[a] and held[2] == ARGV[a + 1]
end

local function row_state(states, id)
  local found = redis.call('HGET', states, 's:' .. id)
  return found and cjson.decode(found) or {}
end

local function trim_rows(k, now, keep_ms, most)
  local rows, states, closed = KEYS[k], KEYS[k + 2], KEYS[k + 3]
  local before = string.format('%.0f', now - keep_ms)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', closed, '-inf', before, 'LIMIT', 0, most)) do
    redis.call('HINCRBY', states, 'c:' .. (row_state(states, id).state or ''), -1)
    redis.call('HDEL', states, 's:' .. id)
    redis.call('HDEL', rows, id)
    redis.call('ZREM', closed, id)
  end
end

local function close_rows(k, a)
  local pending, states, closed = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local fence, keep_ms, count, now = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), server_ms()
  local stamp, found = string.format('%.0f', now), 0
  for at = a + 4, a + 4 + 5 * (count - 1), 5 do
    local id, word = ARGV[at], ARGV[at + 1]
    local number = redis.call('ZSCORE', pending, id)
    if number then
      found = found + 1
      local state = row_state(states, id)
      if word == 'retry' then
        if state.fence ~= fence then state.attempts = (state.attempts or 0) + 1 end
        state.crashes = nil
        if tonumber(number) >= PARKED then
          redis.call('ZADD', pending, string.format('%.0f', tonumber(number) - PARKED), id)
        end
      elseif word == 'needs_model' then
        if tonumber(number) < PARKED then
          redis.call('ZADD', pending, string.format('%.0f', tonumber(number) + PARKED), id)
        end
      else
        redis.call('ZREM', pending, id)
        redis.call('ZADD', closed, stamp, id)
        redis.call('HINCRBY', states, 'c:' .. word, 1)
        redis.call('HDEL', states, 'n:' .. id, 't:' .. id)
      end
      state.state, state.reason, state.plan, state.not_before = word, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
      state.at, state.fence = stamp, fence
      redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    end
  end
  trim_rows(k, now, keep_ms, count + 16)
  if redis.call('EXISTS', pending) == 0 then
    for _, index in ipairs({0, 2, 3, 5}) do redis.call('PEXPIRE', KEYS[k + index], ARGV[a + 2]) end
  end
  return found
end
"""
)

_LOOK = """
local function look(now)
  local left = redis.call('PTTL', KEYS[5])
  if left > 0 then return now + left end
  local first = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. string.format('%.0f', PARKED), 'LIMIT', 0, 1)[1]
  if not first then return redis.call('EXISTS', KEYS[2]) == 1 and PARKED or -1 end
  local not_before = tonumber(row_state(KEYS[3], first).not_before) or 0
  return not_before > now and not_before or 0
end
"""

APPEND_ROWS = register(
    CLOSE_ROWS
    + """
local added, last = 0, math.max(tonumber(redis.call('GET', KEYS[6]) or '0'), server_us() - 1)
for at = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) == 1 then
    added, last = added + 1, last + 1
    redis.call('ZADD', KEYS[2], string.format('%.0f', last), ARGV[at])
    if ARGV[2] ~= '' then redis.call('HSET', KEYS[3], 't:' .. ARGV[at], ARGV[2]) end
  end
end
if added > 0 then
  redis.call('SET', KEYS[6], string.format('%.0f', last))
  for _, index in ipairs({1, 3, 4}) do redis.call('PERSIST', KEYS[index]) end
end
trim_rows(1, server_ms(), tonumber(ARGV[1]), added + 16)
return added
""",
    "refuse",
)

_COUNT_CRASHES = """
local function count_crashes(pending, states)
  local open = redis.call('HGET', states, 'open')
  if not open then return end
  local run = cjson.decode(open)
  for _, id in ipairs(run.ids) do
    local state, number = row_state(states, id), redis.call('ZSCORE', pending, id)
    if number and state.fence ~= run.fence then
      state.crashes = (state.crashes or 0) + 1
      if #run.ids == 1 then state.attempts = (state.attempts or 0) + 1 end
      redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    end
  end
  redis.call('HDEL', states, 'open')
end
"""

CLAIM_ROWS = register(
    CLOSE_ROWS
    + _LOOK
    + _COUNT_CRASHES
    + """
local rows, pending, states, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local now, held = server_ms(), redis.call('HMGET', lease, 'token', 'fence')
if held[1] and held[1] ~= ARGV[2] then return {look(now)} end
if not held[1] then count_crashes(pending, states) end
local due_by, ids, reply = math.max(now, tonumber(ARGV[5])), {}, {0, 0}
local order = '(' .. string.format('%.0f', PARKED)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', pending, '-inf', order, 'LIMIT', 0, ARGV[3])) do
  local state = row_state(states, id)
  local crashes = state.crashes or 0
  if (tonumber(state.not_before) or 0) > due_by or (crashes > 0 and #ids > 0) then break end
  ids[#ids + 1] = id
  local body, kept = redis.call('HGET', rows, id) or '', redis.call('HMGET', states, 'n:' .. id, 't:' .. id)
  local parts = {id, body, state.attempts or 0, crashes, kept[1], kept[2] or ''}
  for _, part in ipairs(parts) do reply[#reply + 1] = part end
  if crashes > 0 then break end
end
if #ids == 0 then return {look(now)} end
local fence = held[2] or string.format('%.0f', redis.call('INCR', KEYS[6]))
redis.call('HSET', lease, 'holder', ARGV[1], 'token', ARGV[2], 'fence', fence)
redis.call('PEXPIRE', lease, ARGV[4])
redis.call('HSET', states, 'open', cjson.encode({fence = fence, ids = ids}))
reply[1], reply[2] = now + tonumber(ARGV[4]), tonumber(fence)
return reply
""",
    "refuse",
)

RENEW_CLAIM = register(
    CLOSE_ROWS
    + """
if not lease_held(1, 1) then return 0 end
return redis.call('PEXPIRE', KEYS[5], ARGV[3])
""",
    "finish",
)

RELEASE_CLAIM = register(
    CLOSE_ROWS
    + _LOOK
    + """
if not lease_held(1, 1) then return {} end
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[3], 'open')
return {look(server_ms())}
""",
    "finish",
)

CLOSE = register(
    CLOSE_ROWS
    + """
if not lease_held(1, 1) then return 0 end
close_rows(1, 1)
return 1
""",
    "finish",
)

NOTE_ROW = register(
    CLOSE_ROWS
    + """
if not lease_held(1, 1) or not redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
redis.call('HSET', KEYS[3], 'n:' .. ARGV[3], ARGV[4])
return 1
""",
    "refuse",
)

RESUME_ROWS = register(
    CLOSE_ROWS
    + """
local pending, states, resumed = KEYS[2], KEYS[3], 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', pending, string.format('%.0f', PARKED), '+inf', 'LIMIT', 0, ARGV[2])) do
  local state = row_state(states, id)
  if state.state == ARGV[1] then
    state.state, state.at, state.not_before = nil, nil, nil
    redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    local number = tonumber(redis.call('ZSCORE', pending, id)) - PARKED
    redis.call('ZADD', pending, string.format('%.0f', number), id)
    resumed = resumed + 1
  end
end
return resumed
""",
    "refuse",
)

LOOK = register(
    CLOSE_ROWS
    + _LOOK
    + """
local order = '(' .. string.format('%.0f', PARKED)
local first = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', order, 'WITHSCORES', 'LIMIT', 0, 1)
return {look(server_ms()), tonumber(first[2] or '0')}
""",
    "read",
)

READ_ROWS = register(
    """
local found, limit = {}, tonumber(ARGV[1])
local function read(listed)
  for at = 1, #listed, 2 do
    local id = listed[at]
    local body = redis.call('HGET', KEYS[1], id) or ''
    local state = redis.call('HMGET', KEYS[3], 's:' .. id, 'n:' .. id)
    for _, part in ipairs({id, listed[at + 1], body, state[1] or '{}', state[2] or ''}) do found[#found + 1] = part end
  end
  limit = limit - #listed / 2
end
read(redis.call('ZRANGE', KEYS[2], 0, limit - 1, 'WITHSCORES'))
if limit > 0 then read(redis.call('ZREVRANGE', KEYS[4], 0, limit - 1, 'WITHSCORES')) end
return found
""",
    "read",
)

OWNERS_DUE = register(
    """
local time = redis.call('TIME')
local now = math.max(tonumber(ARGV[1]), tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now), 'LIMIT', 0, ARGV[2])
""",
    "read",
)

MARK_OWNER = register(
    """
local time, found = redis.call('TIME'), redis.call('ZSCORE', KEYS[1], ARGV[1])
local score = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
if found and tonumber(found) <= score then score = tonumber(found) - 0.001 end
redis.call('ZADD', KEYS[1], string.format('%.3f', score), ARGV[1])
return false
""",
    "refuse",
)

SETTLE_OWNER = register(
    """
local found = redis.call('ZSCORE', KEYS[1], ARGV[1])
if (found and tonumber(found)) ~= (ARGV[2] ~= '' and tonumber(ARGV[2])) then return 0 end
if ARGV[3] == '-1' then redis.call('ZREM', KEYS[1], ARGV[1]) else redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1
""",
    "finish",
)
