#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique index finish lists
-- Looks at the jobs of the next chunk of the index below an id, and puts those that wait or are
-- finished back where they have to stand, as far as they do not. What is left of those that are
-- gone is taken away.
-- ARGV: time, bound for the chunk. Answers: its start, or '' at the end.
local start = ask('ZREVRANGEBYLEX', T .. 'i', ARGV[2], '-', 'LIMIT', 0, 1)[1]
if not start then
  -- Kinds whose lines are still missing have no jobs in them.
  local empty = {}
  for _, queue in ipairs(ask('SMEMBERS', T .. 'qs')) do
    for _, kind in ipairs(ask('SMEMBERS', T .. 'hq:' .. queue)) do
      if ask('ZCARD', heads_key(queue, kind)) == 0 then empty[#empty + 1] = { queue, kind } end
    end
  end
  for _, each in ipairs(empty) do call('SREM', T .. 'hq:' .. each[1], each[2]) end
  call('DEL', T .. 'lost')
  return ''
end

local function is_listed(job)
  local name = STATES[job.state]
  return ask('ZSCORE', T .. 'd:' .. name, job.id)
    or ask('ZSCORE', T .. 'dh:' .. name, job.id)
    or ask('SISMEMBER', T .. 'dk:' .. name, job.id) == 1
end

-- All is looked at before the first is written.
local chunk = ask('GET', T .. 'i:' .. start) or ''
local seen, gone, count, waiting, over = {}, {}, 0, {}, {}
expect('SCARD', T .. 'told')
expect('SCARD', T .. 'qs')
expect('HLEN', T .. 'in')
for at = 1, #chunk, 16 do
  local id = sub(chunk, at, at + 15)
  local job = not seen[id] and read_job(id)
  if not job and not seen[id] then gone[#gone + 1] = id end
  if job then
    seen[id], count = true, count + 1
    if job.state == WAITING then
      look_at_waiting(job)
      waiting[#waiting + 1] = job
    elseif job.state ~= RUNNING and not is_listed(job) then
      look_at_finished(job, STATES[job.state])
      over[#over + 1] = job
    end
  end
end
local missing = #chunk / 16 - count
local counted = tonumber(ask('HGET', T .. 'in', start) or 0)
local lists = {}
if missing > counted and #gone > 0 then
  each_list(function(size, key, queue, kind)
    ask(size, key)
    lists[key] = { size == 'SCARD' and 'SREM' or 'ZREM', queue, kind }
    if queue then
      expect('SCARD', T .. 'hg:' .. queue)
      expect('ZCARD', T .. 'f:' .. queue)
      lists[T .. 'f:' .. queue] = { 'ZREM' }
    end
  end)
  for _, id in ipairs(gone) do call('DEL', T .. 'e:' .. id, T .. 'x:' .. id) end
end

for key, list in pairs(lists) do
  local command, queue, kind = unpack(list)
  if call(command, key, unpack(gone)) > 0 and queue then
    if string.find(key, 'l:', #T + 1, true) == #T + 1 then
      unsettled[sub(key, #T + 3)] = true
    elseif call('EXISTS', key) == 0 then
      call('SREM', T .. 'hg:' .. queue, kind)
    end
  end
end

local lines, lanes = {}, {}
for _, job in ipairs(waiting) do
  local name = line_name(job.priority, job.group and 'g' or 'p', job.queue, job.kind)
  local key = T .. 'l:' .. name
  if job.group then
    groups = groups or make_groups()
    local lane = groups.lane_name(job)
    key = groups.lane_key(job.group, lane)
    lanes[key] = { job.group, lane, job.limit }
    call('ZADD', parked_key(job.queue, job.kind), job.run_at, job.id)
  end
  lines[name] = job
  if not call('ZSCORE', key, job.id) then
    begin_waiting(job)
  elseif band(job.marks, FAILED) ~= 0 then
    call('ZADD', T .. 'f:' .. job.queue, job.run_at, job.id)
  end
end
for _, each in pairs(lanes) do
  local group, lane, limit = unpack(each)
  call('SADD', T .. 'gl:' .. group, lane)
  if groups.running_of(group) < limit then groups.show(group, lane) end
end
for name, job in pairs(lines) do
  call('SADD', T .. 'qs', job.queue)
  if job.group then call('SADD', T .. 'hg:' .. job.queue, job.kind) end
  local first = call('ZRANGE', T .. 'l:' .. name, 0, 0, 'WITHSCORES')
  if #first > 0 then
    if call('ZADD', heads_key(job.queue, job.kind), first[2], name) == 1 then
      wake(job.queue, tonumber(first[2]), true)
    end
    enter_line(job.queue, job.kind, name)
  end
end
for _, job in ipairs(over) do list_finished(job) end
settle_claims()
settle_lines()

if missing == 0 then
  call('HDEL', T .. 'in', start)
  if #chunk == 0 then call('ZREM', T .. 'i', start) end
elseif missing ~= counted then
  local _, remove_from = index_upkeep()
  call('HSET', T .. 'in', start, missing - 1)
  remove_from(start)
end
tell()
return start
