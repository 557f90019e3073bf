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

-- A bound for ZRANGEBYSCORE that excludes the number. `..` alone would lose its last digits.
local function above(number)
  return string.format('(%.17g', number)
end

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

-- Looks, for a script that has not written anything yet, whether a key has the type whose size
-- this command tells; at each key once.
local looked = {}
local function expect(command, key)
  if looked[key] then return end
  ask(command, key)
  looked[key] = true
end

-- A command over many values, in pieces that fit on the stack.
local function call_many(command, key, values)
  for from = 1, #values, 4000 do
    call(command, key, unpack(values, from, math.min(from + 3999, #values)))
  end
end
