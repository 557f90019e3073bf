-- A fetch: queues in strict precedence, in each the priorities downwards, and the lines of one
-- priority merged by run_at and id. What it reads does not depend on how much else there is.
local taken = {}

-- Whether the first of two ids comes before the other: as numbers, for Lua's `<` on strings minds
-- the locale.
local function id_before(one, other)
  local a, b, c = read('>I6I5I5', one)
  local x, y, z = read('>I6I5I5', other)
  if a ~= x then return a < x end
  if b ~= y then return b < y end
  return c < z
end

-- Notes that something is missing, as after an eviction; whoever prunes then looks for all.
local function note_loss()
  call('SET', T .. 'lost', 1)
end

-- Takes the job of an id out of a line that has no such job any more. What it hid stays hidden.
local function heal(line, id)
  note_loss()
  line_remove(line.name, id)
end

-- The heads have named a line for a job that is due, and there is none.
local function miss(line)
  if unsettled[line.name] then return end
  note_loss()
  unsettled[line.name] = true
end

-- The head of a `g` line, past the groups to skip; they stay before it.
local function next_grouped(line, skip)
  local from = line.skipped
  while true do
    local some = ask('ZRANGEBYSCORE', T .. 'l:' .. line.name, '-inf', now, 'WITHSCORES',
      'LIMIT', from, skip and 32 or 1)
    if #some == 0 then
      if from == 0 then miss(line) end
      return false
    end
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
      line.ids = ask('ZRANGEBYSCORE', T .. 'l:' .. line.name, '-inf', now, 'WITHSCORES',
        'LIMIT', line.read, room)
      line.read, line.at = line.read + #line.ids / 2, 1
      if #line.ids == 0 then
        if line.read == 0 then miss(line) end
        return false
      end
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
    groups.look_at_claim(line.job)
    local known = #groups.lanes_of(line.job.group) > 0
    groups.begin_run(line.job.group)
    if not groups.remove(line.job) or not known then note_loss() end
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
  if ask('HGET', T .. 's:' .. session, 'open') ~= '1' then return { 1, -2, {}, {}, {} } end
  local queues, paused, names = {}, {}, {}
  for _, each in ipairs(asked) do
    local name, most, kinds, skip = unpack(each)
    if ask('HGET', T .. 'p', name) == '1' then
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
  -- When something cannot be read or written nothing is claimed.
  local ok, jobs, extras, write_claims = pcall(function()
    local room = math.min(limit, MAX_FETCH)
    for _, queue in ipairs(queues) do
      if room <= 0 then break end
      room = room - take_queue(queue, room)
    end
    return make_claims(session, fetch_no, worker)
  end)
  if not ok then
    give_back(0)
    settle_lines()
    error(jobs)
  end
  write_claims()
  settle_lines()
  if #jobs < 2 * limit and #names > 0 then call('SREM', T .. 'told', unpack(names)) end
  local due = #queues == 0 and -2 or math.huge
  for _, queue in ipairs(queues) do
    if queue.limit > 0 and due ~= 0 then
      -- What only tells when to come again undoes no claim.
      local known, at = pcall(next_due, queue)
      due = known and math.min(due, at - now) or -2
      if not known then break end
    end
  end
  settle_lines()
  return { 0, due == math.huge and -1 or due, paused, jobs, extras }
end
