-- Empties messages; the others keep their numbers.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: bodies
-- Returns: how many were there
-- include mend
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
