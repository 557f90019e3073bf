-- Lines: the waiting jobs of one queue, priority and kind, by run_at and then by id.
--
-- `p` lines hold all jobs without a group, `g` lines only those jobs of groups that may be claimed.
-- `h:<queue>` has the lines with members, each with the run_at of its first.
local unsettled = {}

local function line_name(priority, sort, queue, kind)
  return priority .. ':' .. sort .. ':' .. #queue .. ':' .. queue .. ':' .. kind
end

-- All waiting jobs of groups of a queue and kind, shown or not: when the next of them is due.
local function parked_key(queue, kind)
  return T .. 'gq:' .. #queue .. ':' .. queue .. ':' .. kind
end

-- Adds one job; whether it is the first of its line now.
local function line_add(queue, name, run_at, id)
  call('ZADD', T .. 'l:' .. name, run_at, id)
  return call('ZADD', T .. 'h:' .. queue, 'LT', 'CH', run_at, name) == 1
end

local function line_remove(queue, name, id)
  call('ZREM', T .. 'l:' .. name, id)
  unsettled[name] = queue
end

-- Brings `h` in step with the lines that something was taken from.
local function settle_lines()
  for name, queue in pairs(unsettled) do
    local first = call('ZRANGE', T .. 'l:' .. name, 0, 0, 'WITHSCORES')
    if #first == 0 then
      call('ZREM', T .. 'h:' .. queue, name)
    else
      call('ZADD', T .. 'h:' .. queue, first[2], name)
    end
  end
  unsettled = {}
end
