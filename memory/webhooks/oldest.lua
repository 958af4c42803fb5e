-- Says since when the webhook is tried that waits longest.
-- KEYS: of the outbox
-- Returns: ms since 1970, as a text of 13 digits; nothing when none waits
-- include names
local members, oldest = redis.call('ZRANGE', queue, 0, -1), nil
for first = 1, #members, 1000 do
  local ids = {}
  for at = first, math.min(first + 999, #members) do table.insert(ids, string.match(members[at], '(%S+)$')) end
  for _, state in ipairs(redis.call('HMGET', states, unpack(ids))) do
    local since = state and string.sub(state, 15, 27)
    if since and (not oldest or since < oldest) then oldest = since end
  end
end
return oldest
