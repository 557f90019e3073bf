-- Which lines a fetch looks at: of the kinds that it asks for, those with due jobs, by priority.
-- What it reads does not grow with the kinds that it leaves out, nor with the priorities below.
local function asks_for(queue, kind)
  return not queue.asked or (queue.asked[kind] or 0) > 0
end

-- The kinds that are asked for and may be in a set of kinds: all that were asked for, or those of
-- the set that were, whichever are fewer to look through.
local function kinds_in(queue, key)
  local found, size = {}, ask('SCARD', key)
  if size == 0 then return found end
  if queue.asked and queue.asked_for <= size then
    for kind, number in pairs(queue.asked) do
      if number > 0 then found[#found + 1] = kind end
    end
  else
    for _, kind in ipairs(call('SMEMBERS', key)) do
      if asks_for(queue, kind) then found[#found + 1] = kind end
    end
  end
  return found
end

-- Priority of a line, and whether its jobs have groups.
local function line_parts(name)
  local priority, sort = string.match(name, '^(-?%d+):([pg])')
  return tonumber(priority), sort == 'g'
end

-- Notes lines of one kind, due ones, by their priority; `wanted` has the priorities, the highest
-- last.
local function note_lines(queue, kind, names)
  for _, name in ipairs(names) do
    local priority, grouped = line_parts(name)
    if priority ~= 0 then expect('ZCARD', ranks_key(queue.name, kind)) end
    if not queue.levels[priority] then
      queue.levels[priority] = {}
      table.insert(queue.wanted, priority)
    end
    table.insert(queue.levels[priority], { name = name, queue = queue, kind = kind,
      grouped = grouped, skipped = 0, read = 0, at = 1, ids = {} })
  end
  table.sort(queue.wanted)
end

-- Where many lines have due jobs, a walk goes down the priorities of a kind, as far as there is
-- room for jobs. The functions are made when they are needed.
local function make_walks()
  -- Notes those of these lines that have due jobs.
  local function look(walk, names)
    local due = {}
    for n, run_at in ipairs(ask('ZMSCORE', walk.heads, unpack(names))) do
      if run_at and tonumber(run_at) <= now then
        due[#due + 1] = names[n]
        walk.noted[names[n]] = true
      end
    end
    note_lines(walk.queue, walk.kind, due)
  end

  local function begin(queue, kind)
    local walk = { queue = queue, kind = kind, heads = heads_key(queue.name, kind), noted = {},
      ranks = ranks_key(queue.name, kind), seen = 0, step = 8, reached = math.huge }
    walk.due = call('ZCOUNT', walk.heads, '-inf', now)
    -- Lines of priority 0 are not among those that it goes by.
    look(walk, { line_name(0, 'p', queue.name, kind), line_name(0, 'g', queue.name, kind) })
    return walk
  end

  -- Looks at some more lines. Above the priority that it has then reached the walk has seen all.
  local function go_on(walk)
    if walk.seen > walk.due then
      -- It has passed more lines than have due jobs, and goes by these now.
      local rest = {}
      for _, name in ipairs(call('ZRANGEBYSCORE', walk.heads, '-inf', now)) do
        if not walk.noted[name] then rest[#rest + 1] = name end
      end
      walk.reached = -math.huge
      return note_lines(walk.queue, walk.kind, rest)
    end
    local names = ask('ZRANGE', walk.ranks, walk.seen, walk.seen + walk.step - 1, 'REV')
    walk.reached = names[walk.step] and line_parts(names[walk.step]) or -math.huge
    walk.seen, walk.step = walk.seen + walk.step, math.min(1024, 2 * walk.step)
    if #names > 0 then look(walk, names) end
  end

  return begin, go_on
end

-- Begins to look for lines with due jobs, kind by kind; where they are few, it sees all of them.
local function begin_looking(queue)
  queue.levels, queue.wanted, queue.walks = {}, {}, {}
  local begin
  for _, kind in ipairs(queue.here) do
    local due = ask('ZRANGEBYSCORE', heads_key(queue.name, kind), '-inf', now, 'LIMIT', 0,
      FEW_LINES + 1)
    if #due <= FEW_LINES then
      note_lines(queue, kind, due)
    else
      if not begin then begin, queue.go_on = make_walks() end
      table.insert(queue.walks, begin(queue, kind))
    end
  end
end

-- The lines of the highest priority that has due jobs and was not given yet; nil at the end.
local function next_level(queue)
  for _, walk in ipairs(queue.walks) do
    if queue.kinds and queue.kinds[walk.kind] <= 0 then walk.reached = -math.huge end
    while walk.reached >= (queue.wanted[#queue.wanted] or -math.huge)
      and walk.reached > -math.huge do
      queue.go_on(walk)
    end
  end
  return queue.levels[table.remove(queue.wanted)]
end
