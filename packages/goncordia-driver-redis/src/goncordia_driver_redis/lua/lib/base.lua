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

-- Raises, for a script that has not written anything yet, when a key holds something of another
-- type than that whose size this command tells.
local function expect(command, key)
  local answer = redis.pcall(command, key)
  if type(answer) ~= 'table' then return end
  if not string.find(answer.err, '^WRONGTYPE') then error(answer) end
  error({ err = 'WRONGTYPE ' .. key .. ' holds a ' .. call('TYPE', key).ok })
end

-- A command over many values, in pieces that fit on the stack.
local function call_many(command, key, values)
  for from = 1, #values, 4000 do
    call(command, key, unpack(values, from, math.min(from + 3999, #values)))
  end
end
