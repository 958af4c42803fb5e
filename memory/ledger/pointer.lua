-- Reads the pointer of layout 2: `AGENT`, and behind it the wish to cancel a generation, as `!GENERATION!REASON`.
-- Defines `pointed`, the agent there or ''; `wished`, the generation or nil; `why`, its reason
local pointed, wished, why = '', nil, nil
if pointer then
  local told = redis.pcall('GET', pointer)
  if type(told) == 'string' then
    pointed, wished, why = string.match(told, '^([^!]*)!(%d+)!(.*)$')
    if not pointed then pointed = told end
  end
end
