-- A job alone, without a group and a unique key, as most are: in few steps, and without functions.
--
-- What could go wrong is looked at before the first write, or taken back: with no other rights than
-- what is taken back has needed. To take a job out of a line is none of them, so after the line
-- nothing may fail. Where the index begins or may have to be cut, the job goes on as a batch of one.
--
-- ARGV: time, id, string, queue, `<length of queue>:<queue>:<kind>`, priority. A batch is never
-- empty, and has 8 at least. Answers: 0 inserted, 1 replayed.
local given = ARGV
if #ARGV == 6 then
  local id, raw, queue, place, priority = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
  local line, heads = priority .. ':p:' .. place, T .. 'h:' .. place
  local first = redis.pcall('ZSCORE', heads, line)
  local told = redis.pcall('SISMEMBER', T .. 'told', queue)
  local chunk = redis.pcall('ZREVRANGEBYLEX', T .. 'i', '[' .. id, '-', 'LIMIT', 0, 1)
  if type(first) == 'table' or type(told) == 'table' or chunk.err then
    -- Once more, and with the name of the key if that is what it is.
    local ask = make_looks()
    ask('ZSCORE', heads, line)
    ask('SISMEMBER', T .. 'told', queue)
    ask('ZREVRANGEBYLEX', T .. 'i', '[' .. id, '-', 'LIMIT', 0, 1)
  end
  chunk = chunk[1]
  if chunk then
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

    local kinds, ranks = T .. 'hq:' .. queue, T .. 'h:p:' .. place
    local leads = not first or run_at < tonumber(first)
    local tells = told == 0 and (leads or run_at <= now)
    if leads or tells then
      local ask, _, may = make_looks()
      if leads then
        ask('SCARD', kinds)
        ask('SCARD', T .. 'qs')
        may('ZADD', heads, run_at, line)
        may('SADD', kinds, place)
        may('SADD', T .. 'qs', queue)
        if priority ~= '0' then
          ask('ZCARD', ranks)
          may('ZADD', ranks, priority, line)
        end
      end
      if tells then
        may('SADD', T .. 'told', queue)
        may('SPUBLISH', T .. 'wake', queue)
      end
    end

    local key, ids, members = T .. 'j:' .. id, T .. 'i:' .. chunk, T .. 'l:' .. line
    if not call('SET', key, stored, 'NX') then return 1 end
    local size, added = redis.pcall('APPEND', ids, id), nil
    local appended = type(size) ~= 'table'
    -- It may be time to cut the chunk, which is not looked at with each.
    local full = appended and size > CHUNK_SIZE and size % 512 == 16
    if appended and not full then added = redis.pcall('ZADD', members, run_at, id) end
    if added and type(added) ~= 'table' then
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
      return 0
    end

    -- Set to end at a time that is past, a key is gone: who may set needs no right to delete.
    call('SET', key, '', 'PXAT', 1)
    if appended then
      local before = sub(call('GET', ids), 1, -17)
      if before == '' then call('SET', ids, '', 'PXAT', 1) else call('SET', ids, before) end
    end
    if not full then
      local ask, _, may = make_looks()
      ask('STRLEN', ids)
      ask('ZCARD', members)
      may('APPEND', ids, id)
      may('ZADD', members, run_at, id)
      error(added or size)
    end
  end
  given = { ARGV[1], id, id, '1', raw, 1, id, '' }
end
