-- Where the keys begin, what time it is, and short names. Every script starts with it.
local T = KEYS[1]
local call = redis.call
local read, write = struct.unpack, struct.pack
local sub, byte, band = string.sub, string.byte, bit.band
local NOBODY = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

-- Microseconds since 1970: of the clock that was given, else of this server.
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Looks, for a script that has not written anything yet, or has taken it back.
local function make_looks()
  -- A command that reads, and raises with the key's name when the key is of another type.
  local function ask(command, key, ...)
    local answer = redis.pcall(command, key, ...)
    if type(answer) ~= 'table' or not answer.err then return answer end
    if not string.find(answer.err, '^WRONGTYPE') then error(answer) end
    local name = string.gsub(key, '[^\32-\126]', function(each)
      return string.format('\\x%02x', byte(each))
    end)
    error({ err = 'WRONGTYPE ' .. name .. ' holds a ' .. call('TYPE', key).ok })
  end

  -- Whether a key has the type whose size this command tells; at each key once.
  local looked = {}
  local function expect(command, key)
    if looked[key] then return end
    ask(command, key)
    looked[key] = true
  end

  -- Raises when the user may not run a command.
  local function may(command, key, ...)
    if redis.acl_check_cmd(command, key, ...) then return end
    error({ err = 'NOPERM no permission to run ' .. command .. ' on ' .. key })
  end

  return ask, expect, may
end
