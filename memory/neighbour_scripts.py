"""The Lua of near matches: each script touches one hash tag.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| REMEMBER | entry, hits, near, until | value, lifetime_ms or nothing, score, place, now_ms, most | nil |
| NEAREST | near, until, entry, entry, ... | place, place, ... | number and value of the first that is there, or nil |
| FORGET | entry, hits | how the keys of its neighbours begin | 1: removed; 0: it was not there |

REMEMBER stores an entry and where it stands among its neighbours in one step, and lets go of places whose entries have
expired, *most* at once. No lifetime means for ever. NEAREST lets go of places whose entries are gone. FORGET finds the
place in the end of the entry itself, where `memory.entries.encode` puts it: an entry without one has no neighbours.
"""

import hashlib

from memory.scripts import SOURCES


def _register(source: str) -> str:
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    SOURCES[sha] = source
    return sha


#: Places of expired entries that storing one entry removes: in the long run more than expire meanwhile.
MOST_EXPIRED = 50

REMEMBER = _register(
    """
local entry, hits, near, till = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lifetime, place, now = ARGV[2], ARGV[4], tonumber(ARGV[5])
local expired = redis.call('ZRANGEBYSCORE', till, '-inf', '(' .. ARGV[5], 'LIMIT', 0, ARGV[6])
for _, gone in ipairs(expired) do
  redis.call('ZREM', near, gone)
  redis.call('ZREM', till, gone)
end
redis.call('ZADD', near, ARGV[3], place)
if lifetime == '' then
  redis.call('SET', entry, ARGV[1])
  redis.call('PERSIST', hits)
  redis.call('ZADD', till, '+inf', place)
else
  redis.call('SET', entry, ARGV[1], 'PX', lifetime)
  redis.call('PEXPIRE', hits, lifetime)
  redis.call('ZADD', till, string.format('%.0f', now + tonumber(lifetime)), place)
end
local last = redis.call('ZRANGE', till, -1, -1, 'WITHSCORES')[2]
for _, key in ipairs({near, till}) do
  if last == 'inf' then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIRE', key, string.format('%.0f', math.max(1, tonumber(last) - now)))
  end
end
return false
"""
)

NEAREST = _register(
    """
for number = 1, #ARGV do
  local value = redis.call('GET', KEYS[number + 2])
  if value then return {number, value} end
  redis.call('ZREM', KEYS[1], ARGV[number])
  redis.call('ZREM', KEYS[2], ARGV[number])
end
return false
"""
)

FORGET = _register(
    """
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local frame, place = string.match(string.sub(value, -4096), '"near":{"frame":"(%w+)","place":"([%d.|E+-]+)"}}$')
  if frame then
    redis.call('ZREM', ARGV[1] .. frame, place)
    redis.call('ZREM', ARGV[1] .. frame .. ':until', place)
  end
end
redis.call('UNLINK', KEYS[2])
return redis.call('UNLINK', KEYS[1])
"""
)
