-- When something is due.

-- A time that the calendar has.
local function bounded(time)
  return math.max(FIRST_TIME, math.min(LAST_TIME, time))
end

-- The time that a request means.
local function resolve(when, number)
  if when == NOW then return now end
  if when == IN then return bounded(now + number) end
  return number
end
