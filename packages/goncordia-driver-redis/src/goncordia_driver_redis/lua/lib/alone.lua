-- A job alone, without a group and a unique key, as most are: in few steps, and without functions.
--
-- What could go wrong is looked at before the first write, or taken back: with the rights that who
-- may enqueue has. To take a job out of a line is none of them, so after the line nothing may fail.
--
-- ARGV: time, id, string, queue, `<length of queue>:<queue>:<kind>`, priority. A batch has an odd
-- number of them. Answers: 0 inserted, 1 replayed.
local to_cut
if #ARGV == 6 then
  local id, raw, queue, place = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
  local flags, run_at, stored = byte(raw), now, nil
  if band(flags, RUN_AT) == 0 then
    stored = sub(raw, 1, 3) .. write('<d', now) .. sub(raw, 12)
  else
    run_at = read('<d', raw, 12)
    if band(flags, AFTER) ~= 0 then
      flags, run_at = flags - AFTER, bounded(now + run_at)
    end
    stored = write('<B', flags) .. sub(raw, 2, 3) .. write('<dd', now, run_at) .. sub(raw, 20)
  end

  local priority, kinds = ARGV[6], T .. 'hq:' .. queue
  local line, heads, ranks = priority .. ':p:' .. place, T .. 'h:' .. place, T .. 'h:p:' .. place
  local first = redis.pcall('ZSCORE', heads, line)
  local told = redis.pcall('SISMEMBER', T .. 'told', queue)
  local chunk = redis.pcall('ZREVRANGEBYLEX', T .. 'i', '[' .. id, '-', 'LIMIT', 0, 1)
  if type(first) == 'table' or type(told) == 'table' or chunk.err then
    local ask = make_looks()
    ask('ZCARD', heads)
    ask('SCARD', T .. 'told')
    ask('ZCARD', T .. 'i')
  end
  chunk = chunk[1]
  local leads = not first or run_at < tonumber(first)
  local tells = told == 0 and (leads or run_at <= now)
  if leads or tells then
    local ask, _, may = make_looks()
    if leads then
      ask('SCARD', kinds)
      ask('SCARD', T .. 'qs')
      if priority ~= '0' then ask('ZCARD', ranks) end
      may('ZADD', heads, run_at, line)
      may('SADD', kinds, place)
      may('SADD', T .. 'qs', queue)
    end
    if tells then
      may('SADD', T .. 'told', queue)
      may('SPUBLISH', T .. 'wake', queue)
    end
  end

  local key, ids, members = T .. 'j:' .. id, T .. 'i:' .. (chunk or NOBODY), T .. 'l:' .. line
  if not call('SET', key, stored, 'NX') then return 1 end
  local size, failed = redis.pcall('APPEND', ids, id), nil
  if type(size) == 'table' then
    size, failed = 0, size
  elseif not chunk then
    failed = redis.pcall('ZADD', T .. 'i', 0, NOBODY)
  elseif size > CHUNK_SIZE and size % 512 == 16 then
    -- It is time to cut it, but not at each insert: when all else is done, and if that may be done.
    to_cut, failed = chunk, redis.pcall('HDEL', T .. 'in', '')
  end
  if type(failed) ~= 'table' then failed = redis.pcall('ZADD', members, run_at, id) end
  if type(failed) == 'table' then
    call('DEL', key)
    if size > 0 then
      local before = sub(call('GET', ids), 1, -17)
      if before == '' then call('DEL', ids) else call('SET', ids, before) end
      if not chunk then call('DEL', T .. 'i') end
    end
    local ask, _, may = make_looks()
    ask('STRLEN', ids)
    ask('HLEN', T .. 'in')
    ask('ZCARD', members)
    may('APPEND', ids, id)
    may('ZADD', T .. 'i', 0, id)
    may('HDEL', T .. 'in', id)
    may('ZADD', members, run_at, id)
    error(failed)
  end

  if leads then
    call('ZADD', heads, run_at, line)
    call('SADD', kinds, sub(place, string.find(place, ':', 1, true) + #queue + 2))
    if priority ~= '0' then call('ZADD', ranks, priority, line) end
    call('SADD', T .. 'qs', queue)
  end
  if tells then
    if run_at <= now then call('SADD', T .. 'told', queue) end
    call('SPUBLISH', T .. 'wake', 'j' .. write('<d', math.max(0, run_at - now)) .. queue)
  end
  if not to_cut then return 0 end
end
