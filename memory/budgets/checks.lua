-- Defines what may stand in rows that workers write, and that scripts of others read.
local ROOT = string.match(KEYS[1], '^(.-{all}:)')
local function is_key(name, kind)
  local start = ROOT .. kind .. ':'
  return type(name) == 'string' and string.sub(name, 1, #start) == start
end
local function is_account(name) return is_key(name, 'account') end
local function is_number(value) return type(value) == 'number' and value >= 0 and value < math.huge end
