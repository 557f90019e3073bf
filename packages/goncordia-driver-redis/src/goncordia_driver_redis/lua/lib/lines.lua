-- Lines: the waiting jobs of one queue, priority and kind, by run_at and then by id.
--
-- `p` lines hold all jobs without a group, `g` lines only those jobs of groups that may be claimed.
-- Of each queue and kind `h:` has the lines with members, each with the run_at of its first, and
-- `h:p:` those of other priorities than 0, by their priority; `hq:<queue>` has the kinds that have
-- such lines. So kinds that are not asked for cost nothing, and many priorities hardly anything.
local unsettled = {}

local function line_name(priority, sort, queue, kind)
  return priority .. ':' .. sort .. ':' .. #queue .. ':' .. queue .. ':' .. kind
end

local function heads_key(queue, kind)
  return T .. 'h:' .. #queue .. ':' .. queue .. ':' .. kind
end

local function ranks_key(queue, kind)
  return T .. 'h:p:' .. #queue .. ':' .. queue .. ':' .. kind
end

-- The priority of a line, as a string.
local function line_priority(name)
  return string.match(name, '^-?%d+')
end

-- All waiting jobs of groups of a queue and kind, shown or not: when the next of them is due.
local function parked_key(queue, kind)
  return T .. 'gq:' .. #queue .. ':' .. queue .. ':' .. kind
end

-- Looks at the keys that a line needs.
local seen_lines = {}
local function look_at_line(queue, kind, name)
  if seen_lines[name] then return end
  seen_lines[name] = true
  expect('ZCARD', T .. 'l:' .. name)
  expect('ZCARD', heads_key(queue, kind))
  expect('SCARD', T .. 'hq:' .. queue)
  if line_priority(name) ~= '0' then expect('ZCARD', ranks_key(queue, kind)) end
end

-- A line among the heads may be new there.
local function enter_line(queue, kind, name)
  call('SADD', T .. 'hq:' .. queue, kind)
  local priority = line_priority(name)
  if priority ~= '0' then call('ZADD', ranks_key(queue, kind), priority, name) end
end

-- Adds one job; whether it is the first of its line now.
local function line_add(queue, kind, name, run_at, id)
  call('ZADD', T .. 'l:' .. name, run_at, id)
  local leads = call('ZADD', heads_key(queue, kind), 'LT', 'CH', run_at, name) == 1
  if leads then enter_line(queue, kind, name) end
  return leads
end

local function line_remove(name, id)
  call('ZREM', T .. 'l:' .. name, id)
  unsettled[name] = true
end

-- Brings the heads in step with the lines that something was taken from.
local function settle_lines()
  for name in pairs(unsettled) do
    local size, at = string.match(name, '^-?%d+:[pg]:(%d+):()')
    local queue, kind = sub(name, at, at + size - 1), sub(name, at + size + 1)
    local heads = heads_key(queue, kind)
    local first = call('ZRANGE', T .. 'l:' .. name, 0, 0, 'WITHSCORES')
    if #first > 0 then
      call('ZADD', heads, first[2], name)
    elseif call('ZREM', heads, name) == 1 then
      if line_priority(name) ~= '0' then call('ZREM', ranks_key(queue, kind), name) end
      if call('EXISTS', heads) == 0 then call('SREM', T .. 'hq:' .. queue, kind) end
    end
  end
  unsettled = {}
end
