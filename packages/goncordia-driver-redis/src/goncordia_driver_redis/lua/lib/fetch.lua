-- A fetch: queues in strict precedence, in each the priorities downwards, and the lines of one
-- priority merged by run_at and id. What it reads does not depend on how much else there is.
local claimed, taken = {}, {}

-- Whether the first of two ids comes before the other: as numbers, for Lua's `<` on strings minds
-- the locale.
local function id_before(one, other)
  local a, b, c = read('>I6I5I5', one)
  local x, y, z = read('>I6I5I5', other)
  if a ~= x then return a < x end
  if b ~= y then return b < y end
  return c < z
end

local function asks_for(queue, kind)
  return not queue.asked or (queue.asked[kind] or 0) > 0
end

-- The kinds that are asked for and may be in a set of kinds: all that were asked for, or those of
-- the set that were, whichever are fewer to look through.
local function kinds_in(queue, key)
  local found, size = {}, call('SCARD', key)
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

-- Takes the job of an id out of a line that has no such job any more, as after an eviction.
local function heal(line, id)
  line_remove(line.name, id)
end

-- The head of a `g` line, past the groups to skip; they stay before it.
local function next_grouped(line, skip)
  local from = line.skipped
  while true do
    local some = call('ZRANGEBYSCORE', T .. 'l:' .. line.name, '-inf', now, 'WITHSCORES',
      'LIMIT', from, skip and 32 or 1)
    if #some == 0 then return false end
    for n = 1, #some, 2 do
      line.job = read_job(some[n])
      if not line.job then
        heal(line, some[n])
      elseif skip and skip[line.job.group] then
        line.skipped = line.skipped + 1
      else
        line.id, line.run_at = some[n], tonumber(some[n + 1])
        return true
      end
    end
    from = line.skipped
  end
end

-- The head of a `p` line, read ahead; what was read stays in the line until the fetch is over.
local function next_plain(line, room)
  repeat
    if line.at > #line.ids then
      line.ids = call('ZRANGEBYSCORE', T .. 'l:' .. line.name, '-inf', now, 'WITHSCORES',
        'LIMIT', line.read, room)
      line.read, line.at = line.read + #line.ids / 2, 1
      if #line.ids == 0 then return false end
    end
    line.id, line.run_at = line.ids[line.at], tonumber(line.ids[line.at + 1])
    line.at = line.at + 2
  until not taken[line.id]
  return true
end

local function advance(line, room)
  if line.grouped then return next_grouped(line, line.queue.skip) end
  return next_plain(line, room)
end

-- Claims the head of a line: at once where it has a group, else when the fetch is over.
local function take(line)
  local queue = line.queue
  local claim = { id = line.id, queue = queue.name, line = line.name }
  if line.grouped then
    claim.job = line.job
    groups = groups or make_groups()
    groups.begin_run(line.job.group)
    groups.remove(line.job)
  end
  claimed[#claimed + 1] = claim
  taken[line.id] = true
  if queue.kinds then queue.kinds[line.kind] = queue.kinds[line.kind] - 1 end
end

-- At most so many jobs of lines of one priority; how many they were.
local function take_level(level, room)
  local count, lines = 0, {}
  local ahead = math.ceil(room / #level)
  for _, line in ipairs(level) do
    -- Jobs of higher priority may have used up what is wanted of the kind.
    local kinds = line.queue.kinds
    if (not kinds or kinds[line.kind] > 0) and advance(line, ahead) then
      lines[#lines + 1] = line
    end
  end
  while count < room and #lines > 0 do
    local best = 1
    for n = 2, #lines do
      local line, first = lines[n], lines[best]
      if line.run_at < first.run_at
        or (line.run_at == first.run_at and id_before(line.id, first.id)) then
        best = n
      end
    end
    local line = lines[best]
    take(line)
    count = count + 1
    local kinds = line.queue.kinds
    if kinds and kinds[line.kind] <= 0 then
      for n = #lines, 1, -1 do
        if lines[n].kind == line.kind then table.remove(lines, n) end
      end
    elseif not line.grouped then
      if not next_plain(line, ahead) then table.remove(lines, best) end
    end
    -- A claim may have filled its group, and hidden the heads of other lines.
    if line.grouped then
      local group = line.job.group
      for n = #lines, 1, -1 do
        local other = lines[n]
        if other.grouped and other.job.group == group
          and not next_grouped(other, other.queue.skip) then
          table.remove(lines, n)
        end
      end
    end
  end
  return count
end

local function take_queue(queue, room)
  room = math.min(room, queue.limit)
  if room <= 0 then return 0 end
  begin_looking(queue)
  local count = 0
  while count < room do
    local level = next_level(queue)
    if not level then break end
    count = count + take_level(level, room - count)
  end
  return count
end

-- The string of a job that is claimed now, and its marks.
local function claimed_string(raw, session, fetch_no, worker)
  local flags, size, created, at = read('<BHd', raw)
  local run_at, max, marks, attempt, ended, ended_no = created, -1, 0, 0, NOBODY, 0
  if band(flags, FULL) ~= 0 then
    local _
    _, _, _, run_at, _, marks, attempt, max, _, _, _, _, ended, ended_no, _, at =
      read(HEAD .. 'Hc0', raw)
    if band(marks, STARTED) ~= 0 then marks = marks - STARTED end
  else
    if band(flags, RUN_AT) ~= 0 then run_at, at = read('<d', raw, at) end
    if band(flags, LIMITED) ~= 0 then max, at = read('<i4', raw, at) end
  end
  local common = sub(raw, at, size)
  return write(HEAD .. 'Hc0', band(flags, GROUPED + UNIQUE + TAIL) + FULL, 95 + #worker + #common,
    created, run_at, RUNNING, marks, attempt + 1, max, now, 0, session, fetch_no, ended, ended_no,
    #worker, worker) .. common .. sub(raw, size + 1), marks
end

-- Reads the strings of what is claimed: of as many as one answer can hold, but of one at least. The
-- rest is given back.
local function read_claimed()
  local raws, size, step = {}, 0, 4
  while #raws < #claimed and (size < ANSWER_SIZE or #raws == 0) do
    local keys, most = {}, 1
    for n = #raws + 1, math.min(#raws + step, #claimed) do
      keys[#keys + 1] = T .. 'j:' .. claimed[n].id
    end
    for _, raw in ipairs(call('MGET', unpack(keys))) do
      raws[#raws + 1] = raw
      size = size + (raw and #raw or 0)
      most = math.max(most, raw and #raw or 0)
    end
    step = math.max(1, math.min(500, math.floor((ANSWER_SIZE - size) / most)))
  end
  for n = #claimed, #raws + 1, -1 do
    local job = claimed[n].job
    if job then
      groups.end_run(job.group)
      groups.add(job)
    end
    claimed[n] = nil
  end
  return raws
end

-- Writes the claims; gives ids and strings in turn, and what belongs to them.
local function write_claims(session, fetch_no, worker)
  local raws = read_claimed()
  local lines, failed, started = {}, {}, {}
  local answer, extras, values, holds, count = {}, {}, {}, {}, 0
  for n, claim in ipairs(claimed) do
    local id, name, queue = claim.id, claim.line, claim.queue
    local line = lines[name]
    if line then
      line[#line + 1] = id
    else
      lines[name] = { id }
      unsettled[name] = true
    end
    if raws[n] then
      local text, marks = claimed_string(raws[n], session, fetch_no, worker)
      answer[count + 1], answer[count + 2] = id, text
      values[count + 1], values[count + 2] = T .. 'j:' .. id, text
      holds[count + 1], holds[count + 2] = fetch_no, id
      if marks ~= 0 then
        add_extras(extras, count / 2, id, text)
        if band(marks, FAILED) ~= 0 then
          failed[queue] = failed[queue] or {}
          table.insert(failed[queue], id)
        end
      end
      count = count + 2
      started[queue] = (started[queue] or 0) + 1
    end
  end
  for name, ids in pairs(lines) do call('ZREM', T .. 'l:' .. name, unpack(ids)) end
  if count > 0 then
    call('MSET', unpack(values))
    call('ZADD', T .. 'c:' .. session, unpack(holds))
  end
  for queue, number in pairs(started) do call('HINCRBY', T .. 'r', queue, number) end
  for queue, ids in pairs(failed) do call('ZREM', T .. 'f:' .. queue, unpack(ids)) end
  return answer, extras
end

-- Whether a line has a due job of a group that is not skipped.
local function has_claimable(queue, name, kind)
  local line = { name = name, queue = queue, kind = kind, skipped = 0 }
  return next_grouped(line, queue.skip)
end

-- When a line of the queue and kind will have something to claim; `now` if one has already.
local function next_of_lines(queue, kind)
  local heads = heads_key(queue.name, kind)
  local first = call('ZRANGE', heads, 0, 0, 'WITHSCORES')
  if #first == 0 then return math.huge end
  local _, grouped = line_parts(first[1])
  local run_at = tonumber(first[2])
  if run_at > now then return run_at end
  if not grouped or not queue.skip then return now end
  for _, name in ipairs(call('ZRANGEBYSCORE', heads, '-inf', now)) do
    local _, has_groups = line_parts(name)
    if not has_groups or has_claimable(queue, name, kind) then return now end
  end
  first = call('ZRANGEBYSCORE', heads, above(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(first[2] or math.huge)
end

-- When the next job of a queue is due; `now` when the same fetch, made again, would claim one.
local function next_due(queue)
  local least = math.huge
  for _, kind in ipairs(queue.here) do
    least = math.min(least, next_of_lines(queue, kind))
    if least <= now then return now end
  end
  for _, kind in ipairs(kinds_in(queue, T .. 'hg:' .. queue.name)) do
    local parked = call('ZRANGEBYSCORE', parked_key(queue.name, kind), above(now), '+inf',
      'WITHSCORES', 'LIMIT', 0, 1)
    if parked[2] then least = math.min(least, tonumber(parked[2])) end
  end
  return least
end

-- A request: the session, then as msgpack fetch_no, limit, worker, and of each queue its name,
-- limit, kinds or false, groups to skip or false. Answers: status 1 lost or 0; microseconds until
-- the next job is due, -1 nothing waits, -2 unknown; paused queues; jobs; what belongs to them.
local function fetch(text)
  local session = sub(text, 1, 16)
  local fetch_no, limit, worker, asked = unpack(cmsgpack.unpack(sub(text, 17)))
  if call('HGET', T .. 's:' .. session, 'open') ~= '1' then return { 1, -2, {}, {}, {} } end
  local queues, paused, names = {}, {}, {}
  for _, each in ipairs(asked) do
    local name, most, kinds, skip = unpack(each)
    if call('HGET', T .. 'p', name) == '1' then
      paused[#paused + 1] = name
    else
      local queue = { name = name, limit = most, kinds = kinds or nil, skip = skip and {} or nil }
      if kinds then
        queue.asked, queue.asked_for = {}, 0
        for kind, number in pairs(kinds) do
          queue.asked[kind], queue.asked_for = number, queue.asked_for + 1
        end
      end
      for _, group in ipairs(skip or {}) do queue.skip[group] = true end
      if most > 0 then queue.here = kinds_in(queue, T .. 'hq:' .. name) end
      queues[#queues + 1] = queue
    end
    names[#names + 1] = name
  end
  if limit <= 0 then return { 0, -2, paused, {}, {} } end
  local room = math.min(limit, MAX_FETCH)
  for _, queue in ipairs(queues) do
    if room <= 0 then break end
    room = room - take_queue(queue, room)
  end
  local jobs, extras = write_claims(session, fetch_no, worker)
  settle_lines()
  if #jobs < 2 * limit and #names > 0 then call('SREM', T .. 'told', unpack(names)) end
  local due = #queues == 0 and -2 or math.huge
  for _, queue in ipairs(queues) do
    if queue.limit > 0 and due ~= 0 then due = math.min(due, next_due(queue) - now) end
  end
  settle_lines()
  return { 0, due == math.huge and -1 or due, paused, jobs, extras }
end
