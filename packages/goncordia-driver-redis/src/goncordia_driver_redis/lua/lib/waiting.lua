-- Jobs begin and cease to wait, and to run; groups.
--
-- All waiting jobs of a group stand in lanes: by limit, priority, queue and kind. The first of a
-- lane is shown in its `g` line as long as fewer jobs of the group run than the lane's limit. So a
-- fetch meets only jobs that it may claim, and each change of the count moves a job per lane.

local groups

-- The functions about groups, made when they are needed.
local function make_groups()
  local function lane_name(job)
    return job.limit .. ':' .. job.priority .. ':' .. #job.queue .. ':' .. job.queue .. ':'
      .. #job.kind .. ':' .. job.kind
  end

  local function lane_key(group, lane)
    return T .. 'w:' .. lane .. ':' .. group
  end

  -- Queue, kind and line of a lane.
  local parts = {}
  local function lane_parts(lane)
    if not parts[lane] then
      local priority, size, at = string.match(lane, '^%d+:(-?%d+):(%d+):()')
      local queue = sub(lane, at, at + size - 1)
      local kind = sub(lane, string.match(lane, '^:%d+:()', at + size))
      parts[lane] = { queue, kind, line_name(priority, 'g', queue, kind) }
    end
    return unpack(parts[lane])
  end

  -- The lanes of a group; read once, until there is another or one less.
  local lanes = {}
  local function lanes_of(group)
    if not lanes[group] then lanes[group] = ask('SMEMBERS', T .. 'gl:' .. group) end
    return lanes[group]
  end

  -- Looks at the keys that change when a job of the group begins or ceases to run: of all lanes
  -- the first may be shown or hidden.
  local seen = {}
  local function look_at_runs(group)
    if seen[group] then return end
    seen[group] = true
    expect('HLEN', T .. 'gr')
    for _, lane in ipairs(lanes_of(group)) do
      expect('ZCARD', lane_key(group, lane))
      look_at_line(lane_parts(lane))
    end
  end

  -- The same for a job that is claimed.
  local function look_at_claim(job)
    look_at_runs(job.group)
    expect('ZCARD', parked_key(job.queue, job.kind))
    expect('SCARD', T .. 'hg:' .. job.queue)
  end

  -- The same for a job that begins or ceases to wait.
  local function look_at_grouped(job)
    expect('HLEN', T .. 'gr')
    lanes_of(job.group)
    expect('ZCARD', lane_key(job.group, lane_name(job)))
    expect('ZCARD', parked_key(job.queue, job.kind))
    expect('SCARD', T .. 'hg:' .. job.queue)
    look_at_line(job.queue, job.kind, line_name(job.priority, 'g', job.queue, job.kind))
  end

  local function running_of(group)
    return tonumber(call('HGET', T .. 'gr', group) or 0)
  end

  -- The first of a lane, its run_at, and whether others before it were gone, as after an eviction:
  -- they leave the lane, which must not wait for them.
  local function first_of(key)
    local gone = false
    while true do
      local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
      local id = first[1]
      if not id or call('EXISTS', T .. 'j:' .. id) == 1 then return id, tonumber(first[2]), gone end
      call('ZREM', key, id)
      gone = true
    end
  end

  -- Shows the first of a lane in its line; it may be claimed from now on. Gives whether there is one.
  local function show(group, lane)
    local id, run_at, gone = first_of(lane_key(group, lane))
    if not id then
      if gone then
        call('SREM', T .. 'gl:' .. group, lane)
        lanes[group] = nil
      end
      return false
    end
    local queue, kind, line = lane_parts(lane)
    wake(queue, run_at, line_add(queue, kind, line, run_at, id))
    return true
  end

  local function hide(group, lane)
    local first = call('ZRANGE', lane_key(group, lane), 0, 0)
    if #first == 0 then return end
    local _, _, line = lane_parts(lane)
    line_remove(line, first[1])
  end

  -- The lanes of a group that have exactly this limit.
  local function each_lane(group, limit, act)
    for _, lane in ipairs(lanes_of(group)) do
      if tonumber(string.match(lane, '^%d+')) == limit then act(group, lane) end
    end
  end

  local function add_grouped(job)
    local group, lane = job.group, lane_name(job)
    local key = lane_key(group, lane)
    local first, _, gone = first_of(key)
    call('ZADD', key, job.run_at, job.id)
    if not first then
      call('SADD', T .. 'gl:' .. group, lane)
      lanes[group] = nil
    end
    call('ZADD', parked_key(job.queue, job.kind), job.run_at, job.id)
    call('SADD', T .. 'hg:' .. job.queue, job.kind)
    if running_of(group) >= job.limit then return end
    if gone then return show(group, lane) end
    if call('ZRANGE', key, 0, 0)[1] ~= job.id then return end
    local line = line_name(job.priority, 'g', job.queue, job.kind)
    if first then line_remove(line, first) end
    wake(job.queue, job.run_at, line_add(job.queue, job.kind, line, job.run_at, job.id))
  end

  -- Gives whether the job was the first of its lane, as all are that are claimed.
  local function remove_grouped(job)
    local group, lane = job.group, lane_name(job)
    local key, parked = lane_key(group, lane), parked_key(job.queue, job.kind)
    local was_first = call('ZRANGE', key, 0, 0)[1] == job.id
    call('ZREM', parked, job.id)
    call('ZREM', key, job.id)
    if call('EXISTS', parked) == 0 then call('SREM', T .. 'hg:' .. job.queue, job.kind) end
    if was_first then
      line_remove(line_name(job.priority, 'g', job.queue, job.kind), job.id)
      if running_of(group) < job.limit then show(group, lane) end
    end
    if call('EXISTS', key) == 0 then
      call('SREM', T .. 'gl:' .. group, lane)
      lanes[group] = nil
    end
    return was_first
  end

  -- One more job of the group runs: when that fills lanes, they are hidden.
  local function begin_group_run(group)
    each_lane(group, call('HINCRBY', T .. 'gr', group, 1), hide)
  end

  -- Shows the first of a lane, which must have one. If not it is lost, as after an eviction, and
  -- whoever prunes looks for what stood in it.
  local function show_again(group, lane)
    if not show(group, lane) then call('SET', T .. 'lost', 1) end
  end

  -- One less: the lanes that this gave room to are shown again; all, when the count was lost.
  local function end_group_run(group)
    local left = call('HINCRBY', T .. 'gr', group, -1)
    if left <= 0 then call('HDEL', T .. 'gr', group) end
    if left >= 0 then return each_lane(group, left + 1, show_again) end
    for _, lane in ipairs(lanes_of(group)) do show_again(group, lane) end
  end

  groups = { add = add_grouped, remove = remove_grouped, begin_run = begin_group_run,
    end_run = end_group_run, lane_name = lane_name, lane_key = lane_key,
    lanes_of = lanes_of, running_of = running_of, show = show, look_at_runs = look_at_runs,
    look_at_claim = look_at_claim, look_at_waiting = look_at_grouped }
  return groups
end

-- Looks at the keys that change when the job begins or ceases to wait.
local function look_at_waiting(job)
  expect('ZCARD', T .. 'f:' .. job.queue)
  if job.group then return (groups or make_groups()).look_at_waiting(job) end
  look_at_line(job.queue, job.kind, line_name(job.priority, 'p', job.queue, job.kind))
end

-- The job waits from now on.
local function begin_waiting(job)
  if band(job.marks, FAILED) ~= 0 then call('ZADD', T .. 'f:' .. job.queue, job.run_at, job.id) end
  if job.group then return (groups or make_groups()).add(job) end
  local line = line_name(job.priority, 'p', job.queue, job.kind)
  wake(job.queue, job.run_at, line_add(job.queue, job.kind, line, job.run_at, job.id))
end

-- The job waits no more.
local function end_waiting(job)
  if band(job.marks, FAILED) ~= 0 then call('ZREM', T .. 'f:' .. job.queue, job.id) end
  if job.group then return (groups or make_groups()).remove(job) end
  line_remove(line_name(job.priority, 'p', job.queue, job.kind), job.id)
end
