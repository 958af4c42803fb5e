-- Reads documents and their logs.
-- KEYS: plans, then document and log of each
-- ARGV: entries wanted, then `revision born` known of each
-- Returns: {resources, document, ...}: which resources are stored, parted by spaces, and of each document asked for
--   {revision, born, form, log entries, body}; false where it is not stored, no body where the one known is the one
--   stored. As many of the last log entries come along as are wanted, -1 for all.
local wanted, found = tonumber(ARGV[1]), {redis.call('HGET', KEYS[1], '#resources') or ''}
for at = 2, #KEYS, 2 do
  local stored = redis.call('HMGET', KEYS[at], 'revision', 'born', 'form')
  if stored[1] then
    local entries = {}
    if wanted ~= 0 then entries = redis.call('LRANGE', KEYS[at + 1], wanted < 0 and 0 or -wanted, -1) end
    stored[4] = entries
    local held = stored[1] .. ' ' .. (stored[2] or '')
    if ARGV[1 + at / 2] ~= held then stored[5] = redis.call('HGET', KEYS[at], 'body') end
    found[1 + at / 2] = stored
  else
    found[1 + at / 2] = false
  end
end
return found
