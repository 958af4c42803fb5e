"""The Lua of stories and their analyses: each script touches one hash tag.

Each may be sent again when its reply was lost. What is stored passes through as it is: nothing is decoded here. A key
that holds another type is not ours: READ finds nothing there, and whatever writes replaces it.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| READ | base, then any | for each key: how many fields, then these; -1: all; -2: names; -3: count | what each holds |
| LOAD | base, entities | how many fields, these and their values, names and entities | 1: another; 0: as it was |
| PUT_RESPONSE | base, responses, written, records | see below | 1: another; 0: as it was |
| FOLD | base, documents, records, written, responses, changes... | see below | 1: done; 0: another revision |
| DELETE | base, then all others | - | 1: it was there; 0: it was not |
| MARK | index | member, ms from now | nil |
| RENEW | index | member, ms from now | 1: done; 0: not listed |
| DUE | index | ms from now, how many at most | members, the longest due first, due again then |

Where there is no story READ returns nil, PUT_RESPONSE and FOLD -1. PUT_RESPONSE takes number, response, its digest,
how many to keep, and for how many ms this one stays whatever else comes. FOLD takes number, revision, document, record,
how many to keep, the digest of the response that was analysed, whether the analysis is under way, the revision that it
rests on, and for each hash of changes what to put there under the number. Nothing means: leave the document as it is;
whichever response is stored; remove the change.

Beside each record lie, by its number, `:` the digest of the text it is of, `+` until when nothing of the response goes,
`@` the revision that it rests on. What is under way is not listed by when it was written, and so never goes.
"""

from memory.scripts import register

#: Functions for every script.
#:
#:   story_mend(at, kind)  removes KEYS[at] when it is of another type than *kind*.
#:   story_now()           ms since 1970 by the server's clock.
#:   story_keep(order, count, hash...)  keeps the *count* numbers of KEYS[order] that were written last.
#:   story_held(number)    whether nothing of the response goes yet, by KEYS[4].
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
      for _, hash in ipairs({...}) do redis.call('HDEL', KEYS[hash], number, ':' .. number, '@' .. number) end
    end
  end
end

local function story_held(number)
  local till = redis.call('HGET', KEYS[4], '+' .. number)
  if not till then return false end
  if tonumber(till) > story_now() then return true end
  redis.call('HDEL', KEYS[4], '+' .. number)
  return false
end
"""

READ = register(
    """
local function is_other(index)
  local kind = redis.call('TYPE', KEYS[index]).ok
  return kind ~= 'none' and kind ~= 'hash'
end
if is_other(1) or redis.call('HEXISTS', KEYS[1], 'revision') == 0 then return false end
local found, at = {}, 1
for index = 1, #KEYS do
  local count = tonumber(ARGV[at])
  if is_other(index) then
    found[index] = count == -3 and 0 or {}
    for place = 1, math.min(count, #ARGV) do found[index][place] = false end
    at = at + math.max(0, count)
  elseif count == -1 then
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
""",
    "read",
)

LOAD = register(
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
""",
    "refuse",
)

PUT_RESPONSE = register(
    _CALLS
    + """
story_mend(1, 'hash')
story_mend(2, 'hash')
story_mend(3, 'zset')
story_mend(4, 'hash')
local number = ARGV[1]
local told = redis.call('HMGET', KEYS[1], 'revision', 'last')
if not told[1] then return -1 end
local is_other = redis.call('HGET', KEYS[2], ':' .. number) ~= ARGV[3]
if is_other then redis.call('HINCRBY', KEYS[1], 'revision', 1) end
redis.call('HSET', KEYS[2], number, ARGV[2], ':' .. number, ARGV[3])
redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
if tonumber(ARGV[5]) > 0 then redis.call('HSET', KEYS[4], '+' .. number, story_ms(story_now() + tonumber(ARGV[5]))) end
local last = tonumber(told[2])
if not last or last < tonumber(number) then last = tonumber(number) end
local over, at, is_gone = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[4]), 0, false
while over > 0 do
  local oldest = redis.call('ZRANGE', KEYS[3], at, at)[1]
  if not oldest then break end
  if story_held(oldest) then
    at = at + 1
  else
    redis.call('ZREM', KEYS[3], oldest)
    redis.call('HDEL', KEYS[2], oldest, ':' .. oldest)
    is_gone = is_gone or tonumber(oldest) == last
  end
  over = over - 1
end
if is_gone then
  last = -1
  for _, kept in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do last = math.max(last, tonumber(kept)) end
end
redis.call('HSET', KEYS[1], 'last', story_ms(last))
return is_other and 1 or 0
""",
    "refuse",
)

FOLD = register(
    _CALLS
    + """
for at = 1, #KEYS do story_mend(at, at == 4 and 'zset' or 'hash') end
local number, document = ARGV[1], ARGV[3]
local told = redis.call('HMGET', KEYS[1], 'revision', 'last')
if not told[1] then return -1 end
local digest = redis.call('HGET', KEYS[5], ':' .. number)
if told[1] ~= ARGV[2] or (ARGV[6] ~= '' and digest ~= ARGV[6]) then return 0 end
if document ~= '' then
  redis.call('HSET', KEYS[2], number, document)
  if digest then redis.call('HSET', KEYS[3], ':' .. number, digest) end
end
redis.call('HSET', KEYS[3], number, ARGV[4], '@' .. number, ARGV[8])
local is_other = false
for at = 6, #KEYS do
  is_other = is_other or (redis.call('HGET', KEYS[at], number) or '') ~= ARGV[at + 3]
  if ARGV[at + 3] == '' then
    redis.call('HDEL', KEYS[at], number)
  else
    redis.call('HSET', KEYS[at], number, ARGV[at + 3])
  end
end
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
local after = redis.call('HINCRBY', KEYS[1], 'revision', 1)
if is_other and told[2] and tonumber(number) < tonumber(told[2]) then redis.call('HSET', KEYS[1], 'earlier', after) end
if ARGV[7] == '1' then
  redis.call('HSET', KEYS[3], '+' .. number, '999999999999999')
  redis.call('ZREM', KEYS[4], number)
else
  redis.call('HDEL', KEYS[3], '+' .. number)
  redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
  story_keep(4, ARGV[5], 2, 3)
end
return 1
""",
    "refuse",
)

DELETE = register(
    """
local known = redis.call('EXISTS', KEYS[1])
redis.call('UNLINK', unpack(KEYS))
return known
""",
    "finish",
)

MARK = register(
    _CALLS
    + """
story_mend(1, 'zset')
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return false
""",
    "refuse",
)

RENEW = register(
    _CALLS
    + """
story_mend(1, 'zset')
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return 1
""",
    "finish",
)

DUE = register(
    _CALLS
    + """
story_mend(1, 'zset')
local now = story_now()
local found = redis.call('ZRANGE', KEYS[1], '-inf', story_ms(now), 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, member in ipairs(found) do redis.call('ZADD', KEYS[1], story_ms(now + tonumber(ARGV[1])), member) end
return found
""",
    "finish",
)
