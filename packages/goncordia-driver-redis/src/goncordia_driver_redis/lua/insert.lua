#!lua
-- needs: times jobs wakes lines waiting index unique
-- Inserts jobs, all or nothing: a known id or a held unique key is an answer. Everything that can
-- go wrong is looked at before the first write.
--
-- ARGV: time, the lowest and the highest id, then of each job its id and its string, in which
-- created_at, and run_at where it counts from now, are filled in here.
-- Answers of each: 0 inserted, 1 replayed, or the id of its key's holder.
local count = (#ARGV - 3) / 2
local answers, keys, taken, lines, queues = {}, {}, {}, {}, {}
local grouped, unique, values, ids = {}, {}, {}, {}

for n = 1, count do keys[n] = T .. 'j:' .. ARGV[2 + 2 * n] end
-- Of a job alone that has no unique key, its own SET can tell whether it was there.
local alone = count == 1 and band(byte(ARGV[5]), UNIQUE) == 0
local some_known = not alone and call('EXISTS', unpack(keys)) > 0

-- What jobs with the same header have in common: the header as it is stored, and what it says.
local function header_of(raw, size)
  local flags, _, _, at = read('<BHd', raw)
  local job = { run_at = now, marks = 0, state = WAITING,
    flags = band(flags, GROUPED + UNIQUE + RUN_AT + LIMITED + TAIL) }
  local times = write('<d', now)
  if band(flags, RUN_AT) ~= 0 then
    job.run_at, at = read('<d', raw, at)
    if band(flags, AFTER) ~= 0 then job.run_at = bounded(now + job.run_at) end
    times = times .. write('<d', job.run_at)
  end
  job.header = write('<BH', job.flags, size) .. times .. sub(raw, at, size)
  if band(flags, LIMITED) ~= 0 then at = at + 4 end
  job.queue, job.kind, job.priority, at = read('<Hc0Hc0h', raw, at)
  if band(flags, GROUPED) ~= 0 then job.group, job.limit, at = read('<Hc0I4', raw, at) end
  if band(flags, UNIQUE) ~= 0 then job.unique, job.hold = read('<c32d', raw, at) end
  if not job.group then
    job.line = line_name(job.priority, 'p', job.queue, job.kind)
    lines[job.line] = lines[job.line]
      or { queue = job.queue, kind = job.kind, first = math.huge }
  end
  return job
end

local seen = {}
for n = 1, count do
  local id, raw, key = ARGV[2 + 2 * n], ARGV[3 + 2 * n], keys[n]
  local size = read('<H', raw, 2)
  local header = sub(raw, 1, size)
  local job = seen[header] or header_of(raw, size)
  seen[header] = job
  local answer = 0
  if taken[key] or (some_known and call('EXISTS', key) == 1) then
    answer = 1
  elseif job.unique then
    local mine = unique[job.unique]
    local holder = mine and holds_key(mine) and mine or key_holder(job.unique)
    if holder then answer = holder.id end
  end
  answers[n] = answer
  if answer == 0 then
    taken[key] = true
    queues[job.queue] = true
    ids[#ids + 1] = id
    values[#values + 1] = key
    values[#values + 1] = job.header .. sub(raw, size + 1)
    if job.unique then
      unique[job.unique] = { id = id, hold = job.hold, state = WAITING }
    end
    if job.group then
      grouped[#grouped + 1] = setmetatable({ id = id }, { __index = job })
    else
      local line = lines[job.line]
      line[#line + 1] = job.run_at
      line[#line + 1] = id
      if job.run_at < line.first then line.first = job.run_at end
    end
  end
end
if #ids == 0 then return answers end

-- Reads that raise where a key is not what it should be; what they give is wanted as well.
local chunk = chunk_of(ARGV[2])
if chunk then expect('STRLEN', T .. 'i:' .. chunk) end
for queue in pairs(queues) do is_told(queue) end
for name, line in pairs(lines) do
  expect('ZCARD', T .. 'l:' .. name)
  local before = tonumber(ask('ZSCORE', heads_key(line.queue, line.kind), name))
  line.leads = not before or line.first < before
  if line.leads then
    expect('SCARD', T .. 'qs')
    look_at_line(line.queue, line.kind, name)
  end
end
if #grouped > 0 then
  make_groups()
  expect('HLEN', T .. 'gr')
  expect('SCARD', T .. 'qs')
end
for _, job in ipairs(grouped) do
  expect('SCARD', T .. 'gl:' .. job.group)
  expect('ZCARD', groups.lane_key(job.group, groups.lane_name(job)))
  expect('ZCARD', parked_key(job.queue, job.kind))
  expect('SCARD', T .. 'hg:' .. job.queue)
  look_at_line(job.queue, job.kind, line_name(job.priority, 'g', job.queue, job.kind))
end

if not alone then
  call('MSET', unpack(values))
elseif not call('SET', values[1], values[2], 'NX') then
  return { 1 }
end
for key, job in pairs(unique) do call('SET', T .. 'u:' .. key, job.id) end
for name, line in pairs(lines) do
  if #line > 0 then
    call('ZADD', T .. 'l:' .. name, unpack(line))
    if line.leads then
      call('ZADD', heads_key(line.queue, line.kind), line.first, name)
      enter_line(line.queue, line.kind, name)
      call('SADD', T .. 'qs', line.queue)
    end
    wake(line.queue, line.first, line.leads)
  end
end
for _, job in ipairs(grouped) do
  begin_waiting(job)
  call('SADD', T .. 'qs', job.queue)
end
if #grouped > 0 then settle_lines() end
index_add(ids, ARGV[2], ARGV[3], chunk)
tell()
return answers
