-- Reads the last messages.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: count
-- Returns: body, ...
-- include mend
local bodies = redis.call('LRANGE', SAID, -tonumber(ARGV[1]), -1)
local holed = false
for _, body in ipairs(bodies) do holed = holed or body == '' end
if not holed then return bodies end
local found = {}
for _, body in ipairs(redis.call('LRANGE', SAID, 0, -1)) do
  if body ~= '' then found[#found + 1] = body end
end
local last = {}
for at = math.max(1, #found - tonumber(ARGV[1]) + 1), #found do last[#last + 1] = found[at] end
return last
