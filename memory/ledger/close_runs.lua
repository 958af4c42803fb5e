-- Takes runs that have ended out of the open ones: not what is open again since, nor what no end is listed of.
-- KEYS: the list, rows, open ones
-- ARGV: ids of runs that the ledger has ended
-- Returns: nil
for _, id in ipairs(ARGV) do
  local state = string.match(redis.call('HGET', KEYS[2], id) or '', '^{"g":%d+,"s":"(%a+)"')
  if state and state ~= 'accepted' then
    redis.call('ZREM', KEYS[3], id)
    -- As long as it was open its row stayed, though the list may be too long for it.
    if not redis.call('ZSCORE', KEYS[1], id) then redis.call('HDEL', KEYS[2], id) end
  end
end
return false
