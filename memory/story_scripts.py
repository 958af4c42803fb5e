"""The Lua of stories and their analyses: each script touches one hash tag.

Each may be sent again when its reply was lost. What is stored passes through as it is: nothing is decoded here. A key
that holds another type is not ours: it is replaced, so that it stops nobody, before anything is written.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| READ | base, then any | for each key: how many fields, then these; -1: all; -2: names; -3: count | what each holds |
| LOAD | base, entities | how many fields, these and their values, names and entities | 1: another; 0: as it was |
| PUT_RESPONSE | base, responses, written | number, response, its digest, how many to keep | 1: another; 0: as it was |
| FOLD | base, documents, records, written, responses, changes... | see below | 1: done; 0: another revision |
| DELETE | base, then all others | - | 1: it was there; 0: it was not |
| MARK | index | member, ms from now | nil |
| RENEW | index | member, ms from now | 1: done; 0: not listed |
| DUE | index | ms from now, how many at most | members, the longest due first, due again then |

Where there is no story READ returns nil, PUT_RESPONSE and FOLD -1. FOLD takes number, revision, document, record, how
many to keep, the digest of the response that was analysed, and for each hash of changes what to put there under the
number. Nothing means: leave the document as it is; whichever response is stored; remove the change.
"""

import hashlib

from memory.scripts import SOURCES


def _register(source: str) -> str:
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    SOURCES[sha] = source
    return sha


#: Functions for every script.
#:
#:   story_mend(at, kind)  removes KEYS[at] when it is of another type than *kind*.
#:   story_now()           ms since 1970 by the server's clock.
#:   story_keep(order, hash, beside, count)  keeps the *count* numbers of KEYS[order] that were written last.
_CALLS = """
local function story_mend(at, kind)
  local found = redis.call('TYPE', KEYS[at]).ok
  if found ~= 'none' and found ~= kind then redis.call('DEL', KEYS[at]) end
end

local function story_now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function story_ms(number)
  return string.format('%.0f', number)
end

local function story_keep(order, count, ...)
  local over = redis.call('ZCARD', KEYS[order]) - tonumber(count)
  if over <= 0 then return end
  for at, number in ipairs(redis.call('ZPOPMIN', KEYS[order], over)) do
    if at % 2 == 1 then
      for _, hash in ipairs({...}) do redis.call('HDEL', KEYS[hash], number, ':' .. number) end
    end
  end
end
"""

READ = _register(
    _CALLS
    + """
for at = 1, #KEYS do story_mend(at, 'hash') end
if redis.call('HEXISTS', KEYS[1], 'revision') == 0 then return false end
local found, at = {}, 1
for index = 1, #KEYS do
  local count = tonumber(ARGV[at])
  if count == -1 then
    found[index] = redis.call('HGETALL', KEYS[index])
  elseif count == -2 then
    found[index] = redis.call('HKEYS', KEYS[index])
  elseif count == -3 then
    found[index] = redis.call('HLEN', KEYS[index])
  else
    found[index] = redis.call('HMGET', KEYS[index], unpack(ARGV, at + 1, at + count))
    at = at + count
  end
  at = at + 1
end
return found
"""
)

LOAD = _register(
    _CALLS
    + """
story_mend(1, 'hash')
story_mend(2, 'hash')
local last = 1 + 2 * tonumber(ARGV[1])
local before = redis.call('HGET', KEYS[1], 'digest')
for at = 2, last, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('DEL', KEYS[2])
for at = last + 1, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1]) end
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
local is_other = redis.call('HGET', KEYS[1], 'digest') ~= before
if is_other or redis.call('HEXISTS', KEYS[1], 'revision') == 0 then redis.call('HINCRBY', KEYS[1], 'revision', 1) end
return is_other and 1 or 0
"""
)

PUT_RESPONSE = _register(
    _CALLS
    + """
story_mend(1, 'hash')
story_mend(2, 'hash')
story_mend(3, 'zset')
local number = ARGV[1]
local told = redis.call('HMGET', KEYS[1], 'revision', 'last')
if not told[1] then return -1 end
local is_other = redis.call('HGET', KEYS[2], ':' .. number) ~= ARGV[3]
if is_other then redis.call('HINCRBY', KEYS[1], 'revision', 1) end
redis.call('HSET', KEYS[2], number, ARGV[2], ':' .. number, ARGV[3])
redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
if not told[2] or tonumber(told[2]) < tonumber(number) then redis.call('HSET', KEYS[1], 'last', number) end
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
story_keep(3, ARGV[4], 2)
return is_other and 1 or 0
"""
)

FOLD = _register(
    _CALLS
    + """
for at = 1, #KEYS do story_mend(at, at == 4 and 'zset' or 'hash') end
local number, document = ARGV[1], ARGV[3]
local revision = redis.call('HGET', KEYS[1], 'revision')
if not revision then return -1 end
local digest = redis.call('HGET', KEYS[5], ':' .. number)
if revision ~= ARGV[2] or (digest and ARGV[6] ~= '' and digest ~= ARGV[6]) then return 0 end
if document ~= '' then
  redis.call('HSET', KEYS[2], number, document)
  if digest then redis.call('HSET', KEYS[3], ':' .. number, digest) end
end
redis.call('HSET', KEYS[3], number, ARGV[4])
for at = 6, #KEYS do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[at], number)
  else
    redis.call('HSET', KEYS[at], number, ARGV[at + 1])
  end
end
redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
redis.call('HINCRBY', KEYS[1], 'revision', 1)
story_keep(4, ARGV[5], 2, 3)
return 1
"""
)

DELETE = _register("""
local known = redis.call('EXISTS', KEYS[1])
redis.call('UNLINK', unpack(KEYS))
return known
""")

MARK = _register(
    _CALLS
    + """
story_mend(1, 'zset')
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return false
"""
)

RENEW = _register(
    _CALLS
    + """
story_mend(1, 'zset')
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return 1
"""
)

DUE = _register(
    _CALLS
    + """
story_mend(1, 'zset')
local now = story_now()
local found = redis.call('ZRANGE', KEYS[1], '-inf', story_ms(now), 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, member in ipairs(found) do redis.call('ZADD', KEYS[1], story_ms(now + tonumber(ARGV[1])), member) end
return found
"""
)
