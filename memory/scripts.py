"""The Lua that runs inside Redis: each script touches one hash tag, and FINISH a second one of the same slot.

Each may be sent again when its reply was lost: only two counters, hits and refused reports, can then count twice.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| BEGIN | task | generation, worker, now_ms, keep_ms, lease_ms, before, 1: alone, token, most crashes | see below |
| HOLD | task | generation, worker, lease_ms | 1: done; 0: it ended; -1: another worker's |
| RELEASE_RUN | task | generation, token, weight | 1: done; 0: it ended, or is not that run |
| PARK | task | generation, token, wait_ms, assignment or nothing, keep_ms, weight | 1: done; 0: not that run |
| FINISH | task, ended | generation, status, report, keep_ms, user or nothing | nil: it counts; the earlier; or {wish} |
| FINISH, user or "" and 1 behind that | | | nil: it counts, whatever was there: REPORTS holds it |
| CANCEL | task | generation or 0 for the newest, reason, keep_ms | the report, or {generation, state, assignment} |
| ONCE | task | generation, worker, name, token, keep_ms | 1: yours to make; 0: another's; -1: the run was replaced |
| ACCEPT | task | generation, assignment, keep_ms, its trace if any | nil |
| COUNT_HITS | entry, hits, entry, hits, ... | count, count, ... | how many entries were still there |
| NOTE_USER | users | entry key, expires_at_ms or +inf, now_ms | nil |
| NOTE_SERVED | users, served | entry key, count, entry key, count, ... | nil |
| LEASE | flight, entry | token, lease_ms, 1: ignore the entry, field | -1: yours; -2: remembered; else ms it is held |
| RENEW | flight | token, lease_ms | 1: still yours; 0: lost |
| RELEASE | flight | token, channel | 1: given back; 0: was not yours |

BEGIN returns the report, or {1, run, crashes, excused, 1 when the last crash is news} it may run; {2, ms} it runs
elsewhere; {5, ms} it is not due; {3, reason} it is to be cancelled; {4, crashes, crashes alone, runs, 1 when that is
news} more runs crashed than the caller tolerates: ask again with more of them tolerated, or alone.

The weight of a run that ends is 0, 1 to excuse it, or 2 to take it back from the attempts.

LEASE without a field asks whether the key itself is there.

A key that holds another type is not ours: the ledger replaces it rather than fail every delivery of that task.
"""

import hashlib
from typing import Final, Literal

#: What the server does with a script while its memory is used up, by the word that each declares: it may run, as it
#: writes nothing; it may run, as it frees memory or ends what has begun, and adds no key; it is refused as a whole.
_FLAGS: Final = {"read": "'no-writes'", "finish": "'allow-oom'", "refuse": ""}

#: The library of each function, by the name of both.
LIBRARIES: Final[dict[str, str]] = {}


def register(source: str, when_full: Literal["read", "finish", "refuse"]) -> str:
    """Return the name of the function that runs *source*; a digest of it, so that versions stand side by side."""
    flags = _FLAGS[when_full]
    name = "tl_" + hashlib.sha1(f"{flags}{source}".encode(), usedforsecurity=False).hexdigest()[:20]
    callback = f"function(KEYS, ARGV)\n{source}\nend"
    registered = f"redis.register_function{{function_name='{name}', flags={{{flags}}}, callback={callback}}}"
    LIBRARIES[name] = f"#!lua name={name}\n{registered}\n"
    return name


_READ_REPORT = """
local key, g = KEYS[1], ':' .. ARGV[1]
local read = redis.pcall('HMGET', key, 'report' .. g, 'cancel' .. g)
if read.err then
  if not string.find(read.err, '^WRONGTYPE ') then return read end
  redis.call('DEL', key)
  read = {false, false}
end
local stored, wish = read[1], read[2]
"""

_NOW = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
"""

BEGIN = register(
    _READ_REPORT
    + """
if stored then return stored end
if wish then return {3, wish} end
"""
    + _NOW
    + """
local last = redis.call('HMGET', key, 'worker' .. g, 'leased_until' .. g, 'due_at' .. g,
  'attempts' .. g, 'crashes' .. g, 'crashes_alone' .. g, 'alone' .. g, 'excused' .. g, 'token' .. g)
if last[3] and tonumber(last[3]) > now then return {5, tonumber(last[3]) - now} end
local excused = tonumber(last[8] or '0')
local crashes, alone, fresh = tonumber(last[5] or '0'), tonumber(last[6] or '0'), 0
if last[2] then
  local left = tonumber(last[2]) - now
  if left > 0 and last[1] ~= ARGV[2] then return {2, left} end
  if left > 0 and last[9] == ARGV[8] then return {1, tonumber(last[4]), crashes, excused, 0} end
  if left <= 0 then
    crashes, fresh = crashes + 1, 1
    if last[7] == '1' then alone = alone + 1 end
    redis.call('HSET', key, 'crashes' .. g, crashes, 'crashes_alone' .. g, alone)
    redis.call('HDEL', key, 'leased_until' .. g)
  end
end
if crashes > tonumber(ARGV[9]) and ARGV[7] ~= '1' then return {4, crashes, alone, tonumber(last[4] or '0'), fresh} end
local run = math.max(tonumber(last[4] or '0'), tonumber(ARGV[6])) + 1
redis.call('HSET', key,
  'state' .. g, 'running',
  'worker' .. g, ARGV[2],
  'started_at' .. g, ARGV[3],
  'leased_until' .. g, string.format('%.0f', now + tonumber(ARGV[5])),
  'attempts' .. g, run,
  'alone' .. g, ARGV[7],
  'token' .. g, ARGV[8])
redis.call('PEXPIRE', key, ARGV[4])
return {1, run, crashes, excused, fresh}
""",
    "refuse",
)

HOLD = register(
    """
local key, g = KEYS[1], ':' .. ARGV[1]
local last = redis.call('HMGET', key, 'worker' .. g, 'leased_until' .. g)
if last[1] ~= ARGV[2] then return last[1] and -1 or 0 end
if not last[2] then return 0 end
"""
    + _NOW
    + """
redis.call('HSET', key, 'leased_until' .. g, string.format('%.0f', now + tonumber(ARGV[3])))
return 1
""",
    "finish",
)

_END_RUN = """
local key, g = KEYS[1], ':' .. ARGV[1]
local last = redis.call('HMGET', key, 'token' .. g, 'leased_until' .. g)
if last[1] ~= ARGV[2] or not last[2] then return 0 end
redis.call('HDEL', key, 'leased_until' .. g)
"""

RELEASE_RUN = register(
    _END_RUN
    + """
if ARGV[3] == '1' then redis.call('HINCRBY', key, 'excused' .. g, 1) end
if ARGV[3] == '2' then redis.call('HINCRBY', key, 'attempts' .. g, -1) end
return 1
""",
    "finish",
)

PARK = register(
    _END_RUN
    + _NOW
    + """
if ARGV[6] == '1' then redis.call('HINCRBY', key, 'excused' .. g, 1) end
if ARGV[6] == '2' then redis.call('HINCRBY', key, 'attempts' .. g, -1) end
redis.call('HSET', key, 'state' .. g, 'waiting')
if ARGV[3] ~= '0' then redis.call('HSET', key, 'due_at' .. g, string.format('%.0f', now + tonumber(ARGV[3]))) end
if ARGV[4] ~= '' then redis.call('HSETNX', key, 'assignment' .. g, ARGV[4]) end
redis.call('PEXPIRE', key, ARGV[5])
return 1
""",
    "refuse",
)

FINISH = register(
    _READ_REPORT
    + """
if stored then
  if stored == ARGV[3] then return false end
  redis.call('HINCRBY', key, 'refused' .. g, 1)
  if ARGV[6] ~= '1' then return stored end
  redis.pcall('HINCRBY', KEYS[2], redis.call('HGET', key, 'state' .. g) or '', -1)
end
if wish and ARGV[2] ~= 'cancelled' and ARGV[6] ~= '1' then return {wish} end
local counted = redis.pcall('HINCRBY', KEYS[2], ARGV[2], 1)
if type(counted) == 'table' then
  if not string.find(counted.err, '^WRONGTYPE ') then return counted end
  redis.call('DEL', KEYS[2])
  redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
end
-- What only a run needs goes first: a hash that is empty then is made anew, without the room that its fields took.
redis.call('HDEL', key, 'state' .. g, 'report' .. g, 'worker' .. g, 'started_at' .. g, 'leased_until' .. g,
  'due_at' .. g, 'attempts' .. g, 'alone' .. g, 'token' .. g, 'crashes_alone' .. g, 'excused' .. g)
if ARGV[2] ~= 'failed' then redis.call('HDEL', key, 'assignment' .. g, 'trace' .. g) end
redis.call('HSET', key, 'state' .. g, ARGV[2], 'report' .. g, ARGV[3])
if ARGV[5] and ARGV[5] ~= '' then redis.call('HSET', key, 'user', ARGV[5]) end
redis.call('PEXPIRE', key, ARGV[4])
return false
""",
    "refuse",
)

CANCEL = register(
    """
local key, generation = KEYS[1], tonumber(ARGV[1])
if generation == 0 then
  generation = 1
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local number = tonumber(string.match(field, '^[a-z_]+:(%d+)$') or '0')
    if number > generation then generation = number end
  end
end
local g = ':' .. string.format('%.0f', generation)
local found = redis.call('HMGET', key, 'report' .. g, 'state' .. g, 'assignment' .. g)
if found[1] then return found[1] end
redis.call('HSETNX', key, 'cancel' .. g, ARGV[2])
redis.call('PEXPIRE', key, ARGV[3])
return {generation, found[2] or '', found[3] or ''}
""",
    "refuse",
)

ONCE = register(
    """
local key, g = KEYS[1], ':' .. ARGV[1]
local found = redis.call('HMGET', key, 'once.' .. ARGV[3], 'report' .. g, 'cancel' .. g, 'worker' .. g,
  'leased_until' .. g)
if found[1] then return found[1] == ARGV[4] and 1 or 0 end
if found[2] or found[3] then return -1 end
"""
    + _NOW
    + """
if found[4] and found[4] ~= ARGV[2] and found[5] and tonumber(found[5]) > now then return -1 end
redis.call('HSET', key, 'once.' .. ARGV[3], ARGV[4])
redis.call('PEXPIRE', key, ARGV[5])
return 1
""",
    "refuse",
)

ACCEPT = register(
    _READ_REPORT
    + """
redis.call('HSETNX', key, 'assignment' .. g, ARGV[2])
redis.call('HSETNX', key, 'state' .. g, 'accepted')
if ARGV[4] then redis.call('HSETNX', key, 'trace' .. g, ARGV[4]) end
redis.call('PEXPIRE', key, ARGV[3])
return false
""",
    "refuse",
)

COUNT_HITS = register(
    """
local counted = 0
for index = 1, #ARGV do
  local entry, hits = KEYS[2 * index - 1], KEYS[2 * index]
  local left = redis.call('PTTL', entry)
  if left ~= -2 then
    redis.call('INCRBY', hits, ARGV[index])
    if left > 0 then redis.call('PEXPIRE', hits, left) else redis.call('PERSIST', hits) end
    counted = counted + 1
  end
end
return counted
""",
    "refuse",
)

NOTE_USER = register(
    """
local key, now = KEYS[1], ARGV[3]
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now)
redis.call('ZADD', key, ARGV[2], ARGV[1])
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
if last == 'inf' then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, string.format('%.0f', math.max(1, tonumber(last) - tonumber(now))))
end
return false
""",
    "refuse",
)

NOTE_SERVED = register(
    """
local users, served = KEYS[1], KEYS[2]
for index = 1, #ARGV, 2 do
  if redis.call('ZSCORE', users, ARGV[index]) then redis.call('HINCRBY', served, ARGV[index], ARGV[index + 1]) end
end
if redis.call('HLEN', served) > 2 * redis.call('ZCARD', users) + 100 then
  for _, entry in ipairs(redis.call('HKEYS', served)) do
    if not redis.call('ZSCORE', users, entry) then redis.call('HDEL', served, entry) end
  end
end
local left = redis.call('PTTL', users)
if left > 0 then redis.call('PEXPIRE', served, left) else redis.call('PERSIST', served) end
return false
""",
    "refuse",
)

LEASE = register(
    """
local flight, token, field = KEYS[1], ARGV[1], ARGV[4]
if ARGV[3] ~= '1' then
  local there
  if field then there = redis.pcall('HEXISTS', KEYS[2], field) else there = redis.call('EXISTS', KEYS[2]) end
  if type(there) == 'table' and not string.find(there.err, '^WRONGTYPE ') then return there end
  if there == 1 then return -2 end
end
local owner = redis.call('HGET', flight, 'owner')
if owner and owner ~= token then
  redis.call('HSET', flight, 'awaited', 1)
  return math.max(1, redis.call('PTTL', flight))
end
redis.call('HSET', flight, 'owner', token)
redis.call('PEXPIRE', flight, ARGV[2])
return -1
""",
    "refuse",
)

RENEW = register(
    """
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""",
    "finish",
)

RELEASE = register(
    """
local held = redis.call('HMGET', KEYS[1], 'owner', 'awaited')
if held[1] ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if held[2] then redis.call('PUBLISH', ARGV[2], KEYS[1]) end
return 1
""",
    "finish",
)
