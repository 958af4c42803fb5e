"""The Lua that runs inside Redis: each script touches one hash tag.

Each may be sent again when its reply was lost: only the two counters, hits and refused reports, can then count twice.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| BEGIN | task | generation, worker, now_ms, keep_ms, lease_ms, before | n: nth run; -ms: held elsewhere; or report |
| HOLD | task | generation, worker, lease_ms or 0 to let go | 1: done; 0: not that worker's |
| FINISH | task | generation, status, report, keep_ms | nil: this one counts; else the earlier one |
| ACCEPT | task | generation, assignment, keep_ms | nil |
| COUNT_HITS | entry, hits, entry, hits, ... | count, count, ... | how many entries were still there |
| NOTE_USER | users | entry key, expires_at_ms or +inf, now_ms | nil |
| LEASE | flight, entry | token, lease_ms, 1 to ignore the entry | -1: yours; -2: remembered; else ms it is held |
| RENEW | flight | token, lease_ms | 1: still yours; 0: lost |
| RELEASE | flight | token, channel | 1: given back; 0: was not yours |
| APPEND | turns, ids | turn, turn_id, keep_turns, keep_ms | 1: added; 0: known |

A key that holds another type is not ours: the ledger replaces it rather than fail every delivery of that task.
"""

import hashlib

#: Source of each script by its SHA-1, the name under which Redis knows it.
SOURCES: dict[str, str] = {}


def _register(source: str) -> str:
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    SOURCES[sha] = source
    return sha


_READ_REPORT = """
local key, generation = KEYS[1], ARGV[1]
local stored = redis.pcall('HGET', key, 'report:' .. generation)
if type(stored) == 'table' and stored.err then
  redis.call('DEL', key)
  stored = false
end
"""

BEGIN = _register(
    _READ_REPORT
    + """
if stored then return stored end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local held = redis.call('HMGET', key, 'worker:' .. generation, 'leased_until:' .. generation)
if held[1] and held[1] ~= ARGV[2] and held[2] and tonumber(held[2]) > now then
  return now - tonumber(held[2])
end
redis.call('HSET', key,
  'state:' .. generation, 'running',
  'worker:' .. generation, ARGV[2],
  'started_at:' .. generation, ARGV[3],
  'leased_until:' .. generation, string.format('%.0f', now + tonumber(ARGV[5])))
redis.call('PEXPIRE', key, ARGV[4])
local before = math.max(tonumber(redis.call('HGET', key, 'attempts:' .. generation) or '0'), tonumber(ARGV[6]))
redis.call('HSET', key, 'attempts:' .. generation, before + 1)
return before + 1
"""
)

HOLD = _register(
    """
local key, generation = KEYS[1], ARGV[1]
if redis.call('HGET', key, 'worker:' .. generation) ~= ARGV[2] then return 0 end
if ARGV[3] == '0' then return redis.call('HDEL', key, 'leased_until:' .. generation) end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('HSET', key, 'leased_until:' .. generation, string.format('%.0f', now + tonumber(ARGV[3])))
return 1
"""
)

FINISH = _register(
    _READ_REPORT
    + """
if stored then
  if stored == ARGV[3] then return false end
  redis.call('HINCRBY', key, 'refused:' .. generation, 1)
  return stored
end
redis.call('HSET', key, 'state:' .. generation, ARGV[2], 'report:' .. generation, ARGV[3])
redis.call('PEXPIRE', key, ARGV[4])
return false
"""
)

ACCEPT = _register(
    _READ_REPORT
    + """
redis.call('HSETNX', key, 'assignment:' .. generation, ARGV[2])
redis.call('HSETNX', key, 'state:' .. generation, 'accepted')
redis.call('PEXPIRE', key, ARGV[3])
return false
"""
)

COUNT_HITS = _register(
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
"""
)

NOTE_USER = _register(
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
"""
)

LEASE = _register(
    """
local flight, token = KEYS[1], ARGV[1]
if ARGV[3] ~= '1' and redis.call('EXISTS', KEYS[2]) == 1 then return -2 end
local owner = redis.call('HGET', flight, 'owner')
if owner and owner ~= token then
  redis.call('HSET', flight, 'awaited', 1)
  return math.max(1, redis.call('PTTL', flight))
end
redis.call('HSET', flight, 'owner', token)
redis.call('PEXPIRE', flight, ARGV[2])
return -1
"""
)

RENEW = _register(
    """
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
)

RELEASE = _register(
    """
local held = redis.call('HMGET', KEYS[1], 'owner', 'awaited')
if held[1] ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if held[2] then redis.call('PUBLISH', ARGV[2], KEYS[1]) end
return 1
"""
)

APPEND = _register(
    """
local turns, ids = KEYS[1], KEYS[2]
if redis.call('ZSCORE', ids, ARGV[2]) then return 0 end
local last = redis.call('ZRANGE', ids, -1, -1, 'WITHSCORES')[2] or '0'
redis.call('ZADD', ids, string.format('%.0f', tonumber(last) + 1), ARGV[2])
redis.call('ZREMRANGEBYRANK', ids, 0, -1 - tonumber(ARGV[3]))
redis.call('RPUSH', turns, ARGV[1])
redis.call('LTRIM', turns, -tonumber(ARGV[3]), -1)
redis.call('PEXPIRE', turns, ARGV[4])
redis.call('PEXPIRE', ids, ARGV[4])
return 1
"""
)
