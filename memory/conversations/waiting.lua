-- Reads the inbox.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- Returns: body, ...
-- include mend
local found, waiting = {}, redis.call('LRANGE', INBOX, 0, -1)
for at = 2, #waiting, 2 do
  if waiting[at] ~= '' then found[#found + 1] = waiting[at] end
end
return found
