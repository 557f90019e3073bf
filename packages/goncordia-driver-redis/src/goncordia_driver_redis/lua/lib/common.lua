-- What many scripts need.
local ask, expect, may = make_looks()

-- A bound for ZRANGEBYSCORE that excludes the number. `..` alone would lose its last digits.
local function above(number)
  return string.format('(%.17g', number)
end

-- A command over many values, in pieces that fit on the stack.
local function call_many(command, key, values)
  for from = 1, #values, 4000 do
    call(command, key, unpack(values, from, math.min(from + 3999, #values)))
  end
end
