-- Brings hidden messages of a conversation back to their places, with what its agent had observed before.
-- KEYS: the seven of `memory.keys.ConversationKeys`, then the keys that hide messages, observations, and their tasks
-- Returns: how many messages came back
-- include ../conversations/mend
-- include own_ends
local shown, held = 0, redis.call('HGETALL', KEYS[8])
local function show(list, at, body)
  if at < 0 or redis.call('LINDEX', list, at) ~= '' then return end
  redis.call('LSET', list, at, body)
  shown = shown + 1
end
local waiting = {}
for at, id in ipairs(redis.call('LRANGE', INBOX, 0, -1)) do
  if at % 2 == 1 then waiting[id] = at end
end
for at = 1, #held, 2 do
  local name, body = held[at], held[at + 1]
  local id = string.match(name, '^waiting:(.*)$')
  if id and waiting[id] then
    show(INBOX, waiting[id], body)
  elseif id or tonumber(name) then
    local number = tonumber(id and redis.call('ZSCORE', IDS, id) or name)
    if number and number <= total then show(SAID, number - (total - left) - 1, body) end
  elseif redis.call('EXISTS', DIGEST) == 1 then
    redis.call('HSETNX', DIGEST, name, body)
  end
end
if redis.call('EXISTS', KEYS[9], KEYS[10]) == 2 then
  local own = end_of(KEYS[1])
  local newest = tonumber(redis.call('ZRANGE', KEYS[10], -1, -1, 'WITHSCORES')[2] or '0')
  for at, body in ipairs(redis.call('LRANGE', KEYS[6], 0, -1)) do redis.call('RPUSH', KEYS[9], body) end
  for at, task in ipairs(redis.call('ZRANGE', KEYS[7], 0, -1)) do
    redis.call('ZADD', KEYS[10], string.format('%.0f', newest + at), task)
  end
  for at = 6, 7 do
    redis.call('RENAME', KEYS[at + 3], KEYS[at])
    end_at(KEYS[at], own)
  end
end
redis.call('UNLINK', KEYS[8], KEYS[9], KEYS[10])
return shown
