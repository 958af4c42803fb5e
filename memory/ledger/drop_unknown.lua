-- Removes a task of layout 1, unless it names the agent to whom it belongs.
-- KEYS: task, its children
-- ARGV: nothing
-- Returns: 1: it is gone; 0: it names an agent
local task, children = unpack(KEYS)
if redis.call('TYPE', task).ok ~= 'hash' then return 1 end
local fields = redis.call('HGETALL', task)
for at = 1, #fields, 2 do
  if string.match(fields[at], '^assignment:') or string.match(fields[at], '^report:') or string.match(fields[at], '^wait%.') then
    local is_read, body = pcall(cjson.decode, fields[at + 1])
    local agent = is_read and type(body) == 'table' and body.agent_id
    if type(agent) == 'string' and #agent <= 64 and string.match(agent, '^[%w_-]+$') then return 0 end
  end
end
redis.call('UNLINK', task, task .. ':steps', task .. ':results', children)
return 1
