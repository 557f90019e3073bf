-- A filter as msgpack: states (bits, 1 for available), kinds, queues, tags, group, the first
-- created_at and the one to stop before, each false where it does not matter.

local function as_set(list)
  if not list then return nil end
  local set = {}
  for _, each in ipairs(list) do set[each] = true end
  return set
end

-- Whether a job has all the tags; its string may have been read in part only.
local function has_tags(job, tags)
  if band(job.flags, TAIL) == 0 then return false end
  local length = read('<I4', call('GETRANGE', job.key, job.size, job.size + 3))
  local tail = cmsgpack.unpack(
    call('GETRANGE', job.key, job.size + 4, job.size + 3 + length))
  local has = as_set(tail[4]) or {}
  for _, tag in ipairs(tags) do
    if not has[tag] then return false end
  end
  return true
end

local function state_bit(job)
  if job.state ~= WAITING then return bit.lshift(4, job.state) end
  if job.run_at <= now then return 1 end
  return band(job.marks, FAILED) ~= 0 and 4 or 2
end

-- A function that tells whether the job of an id is there and passes.
local function matcher(text)
  if text == '' then return function(id) return call('EXISTS', T .. 'j:' .. id) == 1 end end
  local states, kinds, queues, tags, group, from, before = unpack(cmsgpack.unpack(text))
  kinds, queues = as_set(kinds), as_set(queues)
  return function(id)
    local job = read_job(id)
    return job ~= nil
      and (not kinds or kinds[job.kind] ~= nil)
      and (not queues or queues[job.queue] ~= nil)
      and (not group or job.group == group)
      and (not from or job.created >= from)
      and (not before or job.created < before)
      and (not states or band(states, state_bit(job)) ~= 0)
      and (not tags or has_tags(job, tags))
  end
end
