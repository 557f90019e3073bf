#!lua
-- needs: times alone | jobs wakes lines waiting index unique
-- Inserts jobs, all or nothing: a known id or a held unique key is an answer. Everything that can
-- go wrong is looked at before the first write.
--
-- `given`: time, the lowest and the highest id, '1' when each is above the one before, then runs of
-- jobs with the same header: the header, how many they are, and of each its id and what comes behind
-- the header. In that created_at, and run_at where it counts from now, are filled in here.
-- Answers: 0 all are inserted; else of each: 0 inserted, 1 replayed, or the id of its key's holder.
local last, lowest, highest, in_order = #given, given[2], given[3], given[4] ~= ''
local count, answers, ids, values, taken, lines, queues, grouped, unique

-- What jobs with the same header have in common: the header as it is stored, and what it says.
local function header_of(raw)
  local flags, size, _, at = read('<BHd', raw)
  local job = { run_at = now, marks = 0, state = WAITING,
    flags = band(flags, GROUPED + UNIQUE + RUN_AT + LIMITED + TAIL) }
  local times = write('<d', now)
  if band(flags, RUN_AT) ~= 0 then
    job.run_at, at = read('<d', raw, at)
    if band(flags, AFTER) ~= 0 then job.run_at = bounded(now + job.run_at) end
    times = times .. write('<d', job.run_at)
  end
  job.header = write('<BH', job.flags, size) .. times .. sub(raw, at)
  if band(flags, LIMITED) ~= 0 then at = at + 4 end
  job.queue, job.kind, job.priority, at = read('<Hc0Hc0h', raw, at)
  if band(flags, GROUPED) ~= 0 then job.group, job.limit, at = read('<Hc0I4', raw, at) end
  if band(flags, UNIQUE) ~= 0 then job.unique, job.hold = read('<c32d', raw, at) end
  return job
end

-- The line of jobs without a group: their scores and ids in turn. Equal scores are equal strings:
-- the server takes its time for a number.
local function line_of(job)
  local name = line_name(job.priority, 'p', job.queue, job.kind)
  local line = lines[name]
  if not line then
    line = { queue = job.queue, kind = job.kind, first = math.huge, size = 0 }
    lines[name] = line
  end
  return line, string.format('%.17g', job.run_at)
end

-- Why a job is not to be inserted, if so.
local function answer_of(job, id, key)
  if taken[key] or call('EXISTS', key) == 1 then return 1 end
  if job.unique then
    local mine = unique[job.unique]
    local holder = mine and holds_key(mine) and mine or key_holder(job.unique)
    if holder then return holder.id end
    unique[job.unique] = { id = id, hold = job.hold, state = WAITING }
  end
  taken[key] = true
end

-- Puts together what is to be written.
--
-- look: whether any of the ids may be there, or come twice.
local function gather(look)
  count, answers, ids, values, taken = 0, {}, {}, {}, {}
  lines, queues, grouped, unique = {}, {}, {}, {}
  local at, total, prefix = 5, 0, T .. 'j:'
  while at < last do
    local job, till = header_of(given[at]), at + 2 * given[at + 1]
    local header, before, line, score = job.header, total, nil, nil
    if not job.group then line, score = line_of(job) end
    local looks, size = look or job.unique, line and line.size
    for n = at + 2, till, 2 do
      local id = given[n]
      local key = prefix .. id
      local answer = looks and answer_of(job, id, key)
      count = count + 1
      if answer then
        answers[count] = answer
      else
        ids[total + 1] = id
        values[2 * total + 1], values[2 * total + 2] = key, header .. given[n + 1]
        total = total + 1
        if line then
          line[size + 1], line[size + 2] = score, id
          size = size + 2
        else
          grouped[#grouped + 1] = setmetatable({ id = id }, { __index = job })
        end
      end
    end
    if total > before then
      queues[job.queue] = true
      if line then line.size, line.first = size, math.min(line.first, job.run_at) end
    end
    at = till + 2
  end
  for name, line in pairs(lines) do
    if line.size == 0 then lines[name] = nil end
  end
  return total
end

-- Raises when this command may not be run on a key, or not with its type.
local function ready(look, command, key, ...)
  may(command, key, ...)
  expect(look, key)
end

-- So of what a line needs that has a new first.
local function ready_to_lead(queue, kind, name)
  look_at_line(queue, kind, name)
  may('ZADD', heads_key(queue, kind), 0, name)
  may('ZADD', ranks_key(queue, kind), 0, name)
  may('SADD', T .. 'hq:' .. queue, kind)
  ready('SCARD', 'SADD', T .. 'qs', queue)
end

-- Looks that nothing is in the way. Gives what of the ids is for which chunk of the index.
local function look_around()
  local parts = index_parts(ids, lowest, highest)
  for _, part in ipairs(parts) do
    local ids_key = T .. 'i:' .. part.start
    part.size = ask('STRLEN', ids_key)
    may('APPEND', ids_key, '')
    may('SET', ids_key, '')
  end
  may('DEL', T .. 'i~')
  may('ZADD', T .. 'i', 0, '')
  ready('HLEN', 'HDEL', T .. 'in', '')
  expect('SCARD', T .. 'told')
  for key in pairs(unique) do may('SET', T .. 'u:' .. key, '') end
  for queue in pairs(queues) do
    if not is_told(queue) then
      may('SADD', T .. 'told', queue)
      may('SPUBLISH', T .. 'wake', queue)
    end
  end
  for name, line in pairs(lines) do
    ready('ZCARD', 'ZADD', T .. 'l:' .. name, 0, '')
    local before = tonumber(ask('ZSCORE', heads_key(line.queue, line.kind), name))
    line.leads = not before or line.first < before
    if line.leads then ready_to_lead(line.queue, line.kind, name) end
  end
  if #grouped > 0 then
    make_groups()
    expect('HLEN', T .. 'gr')
  end
  for _, job in ipairs(grouped) do
    ready('SCARD', 'SADD', T .. 'gl:' .. job.group, '')
    local lane = groups.lane_key(job.group, groups.lane_name(job))
    ready('ZCARD', 'ZADD', lane, 0, '')
    may('ZREM', lane, '')
    ready('ZCARD', 'ZADD', parked_key(job.queue, job.kind), 0, '')
    ready('SCARD', 'SADD', T .. 'hg:' .. job.queue, '')
    local name = line_name(job.priority, 'g', job.queue, job.kind)
    ready_to_lead(job.queue, job.kind, name)
    may('ZADD', T .. 'l:' .. name, 0, '')
    may('ZREM', T .. 'l:' .. name, '')
  end
  return parts
end

expect('ZCARD', T .. 'i')
local parts, look = nil, not in_order
repeat
  local again = look
  if gather(look) == 0 then return answers end
  parts = look_around()
  look = true
until call('MSETNX', unpack(values)) == 1 or again

for key, job in pairs(unique) do call('SET', T .. 'u:' .. key, job.id) end
for name, line in pairs(lines) do
  call('ZADD', T .. 'l:' .. name, unpack(line))
  if line.leads then
    call('ZADD', heads_key(line.queue, line.kind), line.first, name)
    enter_line(line.queue, line.kind, name)
    call('SADD', T .. 'qs', line.queue)
  end
  wake(line.queue, line.first, line.leads)
end
for _, job in ipairs(grouped) do
  begin_waiting(job)
  call('SADD', T .. 'qs', job.queue)
end
if #grouped > 0 then settle_lines() end
index_add(parts, in_order)
tell()
if next(answers) == nil then return 0 end
for n = 1, count do answers[n] = answers[n] or 0 end
return answers
