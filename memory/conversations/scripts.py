"""The Lua of conversations and of what waits for them: each script touches one hash tag, that of a conversation.

KEYS are the first five of `memory.keys.ConversationKeys`, of NOTE and OBSERVED its last two. Messages are numbered from
1 as they enter a conversation, however many of them are still there. Only REPLACE writes a body anew.

| script | ARGV | returns |
|---|---|---|
| SAY | keep, keep_ms, id, body | 1: added; 0: known |
| POST | keep, keep_ms, id, body | 1: it waits; 0: known |
| TAKE | keep, keep_ms, task, window, then id and body of each that arrives | see below |
| SETTLE | keep, keep_ms, task, id of what was said or nothing, its body | number of the last that was seen |
| SUMMARISE | keep, keep_ms, upto, text, removals or nothing | 1: kept; 0: see below |
| PAGE | number before which or 0 for the end, count | {number of the first or 0 at the beginning, {body, ...}, gone} |
| RECENT | count | body, ... |
| WAITING | - | body, ... |
| REMOVE | bodies | how many were there |
| REPLACE | body, body in its place | 1: done; 0: it is not there |
| NOTE | keep, keep_ms, task, body | 1: added; 0: known |
| OBSERVED | count, task or nothing | {body of that task or nil, {body, ...} before that} |

TAKE returns {1 when an earlier run of the task settled, how many it takes as new, numbers of own messages, digest as
{field, value, ...}, number of the first, {body, ...}}. The last so many are new, but for own ones among them: what the
agent said before it took the others.

State holds `total` messages, how many were `seen`, the numbers of its `own` ones behind where some task begins, and a
line for each of the last `tasks`: id, from, upto, 1 when it settled. Digest holds `count`, `since`, `until`, `by:` and
a speaker each, `summary`, `summarised`, and how many `removals` there were. What was removed leaves an empty body: the
others keep their numbers. A summary is kept when so many have left the window, fewer are summarised, and nothing was
removed since it was begun. `gone` is how many of the first messages are no longer there.

Each may be sent again when its reply was lost. A key that holds another type is not ours: it is replaced.
"""

from memory.scripts import register

#: Removes keys of another type. Ids of what waited in one of those wait no longer.
_MEND = """
local SAID, IDS, INBOX, STATE, DIGEST = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function whole(number) return string.format('%.0f', number) end

for at, meant in ipairs({'list', 'zset', 'list', 'hash', 'hash'}) do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind ~= 'none' and kind ~= meant then
    redis.call('DEL', KEYS[at])
    if at == 3 then redis.call('ZREMRANGEBYSCORE', IDS, 'inf', 'inf') end
  end
end

local left = redis.call('LLEN', SAID)
local newest = redis.call('ZREVRANGEBYSCORE', IDS, '(inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local total = math.max(tonumber(redis.call('HGET', STATE, 'total') or '0'), tonumber(newest or '0'), left)
"""

#: Counts who said what leaves the window, each message once, before it can be trimmed.
_FOLD = """
-- Seconds since 1970 of a turn, whose time is written out, or of a world.
local function moment(told)
  if type(told.time) == 'number' then return told.time end
  local y, m, d, hours, minutes, seconds, zone =
    string.match(tostring(told.at), '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)(.*)$')
  if not y then return nil end
  y, m, d = tonumber(y), tonumber(m), tonumber(d)
  if m <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local of_era = y - era * 400
  local of_year = math.floor((153 * ((m + 9) % 12) + 2) / 5) + d - 1
  local days = era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100) + of_year - 719468
  local sign, east, rest = string.match(zone, '^([+-])(%d%d):?(%d%d)$')
  local offset = sign and (tonumber(east) * 3600 + tonumber(rest) * 60) * (sign == '-' and -1 or 1) or 0
  return math.max(0, days * 86400 + tonumber(hours) * 3600 + tonumber(minutes) * 60 + tonumber(seconds) - offset)
end

local function speaker_of(told)
  local speaker = told.speaker
  if speaker == 'assistant' and type(told.agent_id) == 'string' then speaker = told.agent_id end
  return type(speaker) == 'string' and speaker or 'others'
end

local function fold(upto)
  local folded = tonumber(redis.call('HGET', DIGEST, 'count') or '0')
  if upto <= folded then return folded end
  local first, by, most = total - left, {}, 200
  local since, until_ = unpack(redis.call('HMGET', DIGEST, 'since', 'until'))
  since, until_ = tonumber(since or 'x'), tonumber(until_ or 'x')
  if first > folded then by['others'] = math.min(first, upto) - folded end
  local from = math.max(folded, first)
  local bodies = upto > from and redis.call('LRANGE', SAID, from - first, upto - first - 1) or {}
  for _, body in ipairs(bodies) do
    local read, told = pcall(cjson.decode, body)
    if not read or type(told) ~= 'table' then told = {} end
    local speaker, at = speaker_of(told), moment(told)
    by[speaker] = (by[speaker] or 0) + 1
    if at then since, until_ = math.min(since or at, at), math.max(until_ or at, at) end
  end
  for speaker, count in pairs(by) do
    local field = 'by:' .. speaker
    if redis.call('HEXISTS', DIGEST, field) == 0 and redis.call('HLEN', DIGEST) > most then field = 'by:others' end
    redis.call('HINCRBY', DIGEST, field, whole(count))
  end
  redis.call('HSET', DIGEST, 'count', whole(upto))
  if since then
    redis.call('HSET', DIGEST, 'since', string.format('%.17g', since), 'until', string.format('%.17g', until_))
  end
  return upto
end
"""

#: What every script that adds a message begins with; `finish` is its end.
_APPEND = (
    _MEND
    + _FOLD
    + """
local keep, keep_ms = tonumber(ARGV[1]), ARGV[2]

local function put(id, body)
  total, left = total + 1, left + 1
  redis.call('ZADD', IDS, whole(total), id)
  redis.call('RPUSH', SAID, body)
end

local function add(id, body)
  if redis.call('ZSCORE', IDS, id) then return 0 end
  put(id, body)
  return 1
end

local function bound()
  if left > keep then
    fold(total - keep)
    redis.call('LTRIM', SAID, -keep, -1)
    left = keep
  end
  redis.call('ZREMRANGEBYSCORE', IDS, '-inf', whole(total - keep))
end

local function finish(result)
  bound()
  redis.call('HSET', STATE, 'total', whole(total))
  for at = 1, 5 do redis.call('PEXPIRE', KEYS[at], keep_ms) end
  return result
end
"""
)

#: What a state tells: `seen`, `own` by number, `tasks` in the order in which they took.
_STATE = """
local told = redis.call('HMGET', STATE, 'seen', 'own', 'tasks')
local seen, own, tasks, known = tonumber(told[1] or '0'), {}, {}, nil
for number in string.gmatch(told[2] or '', '%d+') do own[tonumber(number)] = true end
for line in string.gmatch(told[3] or '', '[^\\n]+') do
  local id, from, upto, settled = string.match(line, '^(%S+) (%d+) (%d+) (%d)$')
  local task = id and {id = id, from = tonumber(from), upto = tonumber(upto), settled = settled == '1'}
  if id == ARGV[3] then known = task end
  tasks[#tasks + 1] = task
end

local function remember(most)
  local lines, numbers, shown = {}, {}, seen
  for at = math.max(1, #tasks - most + 1), #tasks do
    local task = tasks[at]
    shown = math.min(shown, task.from)
    lines[#lines + 1] =
      task.id .. ' ' .. whole(task.from) .. ' ' .. whole(task.upto) .. ' ' .. (task.settled and '1' or '0') .. '\\n'
  end
  while own[seen + 1] and seen < 2 ^ 53 do seen = seen + 1 end
  for number in pairs(own) do
    if number > shown and number > total - keep then numbers[#numbers + 1] = whole(number) end
  end
  redis.call('HSET', STATE,
    'seen', whole(seen), 'own', table.concat(numbers, ' '), 'tasks', table.concat(lines))
end
"""

SAY = register(
    _APPEND + "return finish(add(ARGV[3], ARGV[4]))",
    "refuse",
)

POST = register(
    _APPEND
    + """
local is_new = not redis.call('ZSCORE', IDS, ARGV[3])
if is_new then
  redis.call('ZADD', IDS, '+inf', ARGV[3])
  if redis.call('RPUSH', INBOX, ARGV[3], ARGV[4]) > 2 * keep then
    -- Nobody takes: what is bounded is the conversation.
    local id = redis.call('LPOP', INBOX)
    put(id, redis.call('LPOP', INBOX))
  end
end
return finish(is_new and 1 or 0)
""",
    "refuse",
)

TAKE = register(
    _APPEND
    + _STATE
    + """
local window = tonumber(ARGV[4])
for at = 5, #ARGV, 2 do add(ARGV[at], ARGV[at + 1]) end

-- What it took, it takes again, but for what another task has settled meanwhile.
if not (known and (known.settled or seen <= known.from)) then
  local waiting = redis.call('LRANGE', INBOX, 0, -1)
  for at = 1, #waiting, 2 do put(waiting[at], waiting[at + 1]) end
  redis.call('DEL', INBOX)
  bound()
  if known then
    for at, task in ipairs(tasks) do
      if task == known then table.remove(tasks, at) break end
    end
  end
  known = {id = ARGV[3], from = math.max(seen, total - left), upto = total}
  tasks[#tasks + 1] = known
  remember(32)
  fold(math.min(known.from, total - window))
else
  bound()
end

local gone, upto = total - left, known.upto
local start = math.max(gone, math.min(tonumber(redis.call('HGET', DIGEST, 'count') or '0'), known.from))
local numbers = {}
for number in pairs(own) do
  if number > known.from and number <= upto then numbers[#numbers + 1] = number end
end
local bodies = upto > start and redis.call('LRANGE', SAID, start - gone, upto - gone - 1) or {}
local new = upto - math.max(start, known.from)
return finish({
  known.settled and 1 or 0, math.max(0, new), numbers, redis.call('HGETALL', DIGEST), start + 1, bodies
})
""",
    "refuse",
)

SETTLE = register(
    _APPEND
    + _STATE
    + """
if known then
  known.settled = true
  seen = math.max(seen, known.upto)
end
if ARGV[4] ~= '' and add(ARGV[4], ARGV[5]) == 1 then own[total] = true end
remember(32)
return finish(seen)
""",
    "refuse",
)

SUMMARISE = register(
    _APPEND
    + """
local upto = tonumber(ARGV[3])
local count, summarised, removals = unpack(redis.call('HMGET', DIGEST, 'count', 'summarised', 'removals'))
if upto > tonumber(count or '0') or upto <= tonumber(summarised or '0') then return 0 end
if ARGV[5] ~= '' and ARGV[5] ~= (removals or '0') then return 0 end
redis.call('HSET', DIGEST, 'summary', ARGV[4], 'summarised', whole(upto))
return finish(1)
""",
    "refuse",
)

PAGE = register(
    _MEND
    + """
local before, count, gone = tonumber(ARGV[1]), tonumber(ARGV[2]), total - left
local upto = before > 0 and math.min(before - 1, total) or total
local from = math.max(gone, upto - count)
if upto <= from then return {0, {}, gone} end
return {from > gone and from + 1 or 0, redis.call('LRANGE', SAID, from - gone, upto - gone - 1), gone}
""",
    "finish",
)

RECENT = register(
    _MEND
    + """
local bodies = redis.call('LRANGE', SAID, -tonumber(ARGV[1]), -1)
local holed = false
for _, body in ipairs(bodies) do holed = holed or body == '' end
if not holed then return bodies end
local found = {}
for _, body in ipairs(redis.call('LRANGE', SAID, 0, -1)) do
  if body ~= '' then found[#found + 1] = body end
end
local last = {}
for at = math.max(1, #found - tonumber(ARGV[1]) + 1), #found do last[#last + 1] = found[at] end
return last
""",
    "finish",
)

WAITING = register(
    _MEND
    + """
local found, waiting = {}, redis.call('LRANGE', INBOX, 0, -1)
for at = 2, #waiting, 2 do
  if waiting[at] ~= '' then found[#found + 1] = waiting[at] end
end
return found
""",
    "finish",
)

REMOVE = register(
    _MEND
    + """
local removed = 0
for _, body in ipairs(ARGV) do
  for _, key in ipairs({SAID, INBOX}) do
    for _, at in ipairs(redis.call('LPOS', key, body, 'COUNT', 0)) do
      redis.call('LSET', key, at, '')
      removed = removed + 1
    end
  end
end
-- Nothing tells whose words a summary is made of.
redis.call('HDEL', DIGEST, 'summary', 'summarised')
if removed > 0 then
  redis.call('HINCRBY', DIGEST, 'removals', 1)
  local left_ms = math.max(redis.call('PTTL', SAID), redis.call('PTTL', INBOX))
  if left_ms > 0 then redis.call('PEXPIRE', DIGEST, left_ms) end
end
return removed
""",
    "finish",
)

REPLACE = register(
    _MEND
    + """
local at = redis.call('LPOS', SAID, ARGV[1], 'RANK', -1)
if not at then return 0 end
redis.call('LSET', SAID, at, ARGV[2])
return 1
""",
    "refuse",
)

_OBSERVING = """
for at, meant in ipairs({'list', 'zset'}) do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind ~= 'none' and kind ~= meant then redis.call('DEL', KEYS[1], KEYS[2]) end
end
"""

NOTE = register(
    _OBSERVING
    + """
if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or '0'
redis.call('ZADD', KEYS[2], string.format('%.0f', tonumber(newest) + 1), ARGV[3])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[1]))
redis.call('RPUSH', KEYS[1], ARGV[4])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
""",
    "refuse",
)

OBSERVED = register(
    _OBSERVING
    + """
local count, upto = tonumber(ARGV[1]), redis.call('LLEN', KEYS[1])
local rank = ARGV[2] ~= '' and redis.call('ZRANK', KEYS[2], ARGV[2])
local own = rank and redis.call('LINDEX', KEYS[1], rank)
if own then upto = rank end
if count < 1 or upto < 1 then return {own, {}} end
return {own, redis.call('LRANGE', KEYS[1], math.max(0, upto - count), upto - 1)}
""",
    "finish",
)
