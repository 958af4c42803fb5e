-- Appends a record.
-- KEYS: records, words, timeline, state, successors, predecessors, tokens, marks, vocabulary, then every index it stands
--   in, that of what is in force of its kind first
-- ARGV: letter of the kind, body, token, id it supersedes, line of words, and to load a record its id, time and time of
--   redaction, else nothing
-- Returns: {new, id, at_ms}; {known, id}: the token was used; {exists}: an id to load is there; {missing},
--   {superseded, id} or {younger}: what is to be superseded cannot be. Nothing was written then: a record comes behind
--   what it supersedes, so that it can be loaded in order.
-- include shared
local records, words, timeline, state, successors, predecessors, tokens, marks, vocabulary = unpack(KEYS, 1, 9)
local letter, body, token, old, line, id, redacted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8]
if token ~= '' then
  local known = redis.call('HGET', tokens, token)
  if known then return {'known', known} end
end
if id ~= '' and redis.call('HEXISTS', records, id) == 1 then return {'exists'} end
if old ~= '' then
  if redis.call('HEXISTS', records, old) == 0 then return {'missing'} end
  local by = redis.call('HGET', successors, old)
  if by then return {'superseded', by} end
end

local old_at = old ~= '' and tonumber(string.match(redis.call('HGET', records, old), '^%d+')) or 0
local at
local last = tonumber(redis.call('HGET', state, letter) or '0')
if id == '' then
  at = math.max(now, tonumber(redis.call('HGET', state, 'at') or '0'))
  id = letter .. number(last + 1)
  redis.call('HSET', state, letter, number(last + 1), 'at', number(at))
  at, redacted = math.max(at, old_at), '0'
else
  at = tonumber(ARGV[7])
  if at < old_at then return {'younger'} end
  redis.call('HSET', state, letter, number(math.max(last, tonumber(string.sub(id, 2)))))
end
local place, slot = nil, at
while not place and slot < 2 ^ 43 do
  local low, high = slot * 1024, slot * 1024 + 1023
  local top = redis.call('ZREVRANGEBYSCORE', timeline, number(high), number(low), 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not top then place = low elseif tonumber(top) < high then place = tonumber(top) + 1 end
  slot = slot + 1
end
place = number(place)

redis.call('HSET', records, id, number(at) .. ' ' .. redacted .. ' ' .. body)
redis.call('HSET', words, id, line)
redis.call('ZADD', timeline, place, id)
for index = 10, #KEYS do redis.call('ZADD', KEYS[index], place, id) end
local ranked = {}
for word in string.gmatch(line, ' ([^:# ][^ ]*)') do
  ranked[#ranked + 1], ranked[#ranked + 2] = 0, word
end
-- Lua unpacks some 8,000 values at most.
for first = 1, #ranked, 2000 do
  redis.call('ZADD', vocabulary, unpack(ranked, first, math.min(first + 1999, #ranked)))
end
mark(marks, letter, line, id)
if token ~= '' then redis.call('HSET', tokens, token, id) end
if old ~= '' then
  redis.call('HSET', successors, old, id)
  redis.call('HSET', predecessors, id, old)
  redis.call('ZREM', KEYS[10], old)
  mark(marks, letter, redis.call('HGET', words, old), id)
end
return {'new', id, number(at)}
