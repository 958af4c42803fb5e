-- Removes webhooks, and addresses of tasks.
-- KEYS: of the outbox
-- ARGV: their ids
-- Returns: how many were there
-- include names
local count = 0
for _, id in ipairs(ARGV) do count = count + drop(id) end
return count
