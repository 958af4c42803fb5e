-- Hides what a user said in a conversation; all of it where nobody else takes part. The others keep their numbers.
-- KEYS: the seven of `memory.keys.ConversationKeys`, then the keys that hide messages, observations, and their tasks
-- ARGV: user id, for how many ms what is hidden lasts
-- Returns: how many messages were hidden
-- include ../conversations/mend
-- include own_ends
local user, ends_at, hidden = ARGV[1], now + tonumber(ARGV[2]), 0
local function user_of(body)
  local is_read, told = pcall(cjson.decode, body)
  local found = is_read and type(told) == 'table' and told.user_id
  return type(found) == 'string' and found or nil
end
local said, waiting, is_shared = redis.call('LRANGE', SAID, 0, -1), redis.call('LRANGE', INBOX, 0, -1), false
for _, body in ipairs(said) do is_shared = is_shared or (user_of(body) or user) ~= user end
for at = 2, #waiting, 2 do is_shared = is_shared or (user_of(waiting[at]) or user) ~= user end
local function hide(list, at, name, body)
  if body == '' or (is_shared and user_of(body) ~= user) then return end
  redis.call('HSET', KEYS[8], name, body)
  redis.call('LSET', list, at - 1, '')
  hidden = hidden + 1
end
for at, body in ipairs(said) do hide(SAID, at, whole(total - left + at), body) end
for at = 2, #waiting, 2 do hide(INBOX, at, 'waiting:' .. waiting[at - 1], waiting[at]) end
-- Nothing tells whose words a summary is made of.
for _, name in ipairs({'summary', 'summarised'}) do
  local told = redis.call('HGET', DIGEST, name)
  if told then redis.call('HSET', KEYS[8], name, told) end
end
redis.call('HDEL', DIGEST, 'summary', 'summarised')
if hidden > 0 then
  redis.call('HINCRBY', DIGEST, 'removals', 1)
  end_at(DIGEST, math.max(end_of(SAID), end_of(INBOX)))
end
for at = 6, 7 do
  if redis.call('EXISTS', KEYS[at]) == 1 then redis.call('RENAME', KEYS[at], KEYS[at + 3]) end
end
for at = 8, 10 do end_at(KEYS[at], ends_at) end
-- The places stay for as long as something may come back to them.
for at = 1, 5 do
  local own = end_of(KEYS[at])
  if own >= 0 and own < ends_at then end_at(KEYS[at], ends_at) end
end
return hidden
