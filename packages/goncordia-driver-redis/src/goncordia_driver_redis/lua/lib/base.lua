-- Where the keys begin, what time it is, and short names. Every script starts with it.
local T = KEYS[1]
local call = redis.call
local read, write = struct.unpack, struct.pack
local sub, byte, band = string.sub, string.byte, bit.band

-- Microseconds since 1970: of the clock that was given, else of this server.
local function current_time()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local now = current_time()
local LAST = 253402214400000000
local FIRST = -62135510400000000

-- A time that the calendar has.
local function bounded(time)
  return math.max(FIRST, math.min(LAST, time))
end

-- Where `run_at` comes from: 0 now, 1 so many microseconds from now, 2 a point in time.
local function resolve(kind, number)
  if kind == 0 then return now end
  if kind == 1 then return bounded(now + number) end
  return number
end

-- A bound for ZRANGEBYSCORE that excludes the number. `..` alone would lose its last digits.
local function above(number)
  return string.format('(%.17g', number)
end

-- Raises, before anything was written, when a key holds something of another type.
local function expect(kind, key)
  local found = call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    error({ err = 'WRONGTYPE ' .. key .. ' holds a ' .. found .. ', not a ' .. kind })
  end
end

-- A command over many values, in pieces that fit on the stack.
local function call_many(command, key, values)
  for from = 1, #values, 4000 do
    call(command, key, unpack(values, from, math.min(from + 3999, #values)))
  end
end
