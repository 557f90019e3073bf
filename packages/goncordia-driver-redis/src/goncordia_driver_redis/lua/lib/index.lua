-- The index of all ids: what lists and counts go by, at some 17 bytes an id.
--
-- `i` has the starts of chunks, by their bytes; chunk `i:<start>` is the ids from that start to the
-- next, one behind the other, in no order, and may hold ids that are gone: `in` counts them.
local function chunk_of(id)
  return ask('ZREVRANGEBYLEX', T .. 'i', '[' .. id, '-', 'LIMIT', 0, 1)[1]
end

-- What few calls need, made when it is needed: cutting chunks, and removing ids.
local function index_upkeep()
  -- The living ids of a string, each once, sorted by their bytes: the server compares them, for
  -- Lua's own `<` minds the locale.
  local function living_ids(text)
    local scratch, members = T .. 'i~', {}
    for at = 1, #text, 16 do
      local id = sub(text, at, at + 15)
      if call('EXISTS', T .. 'j:' .. id) == 1 then
        members[#members + 1] = 0
        members[#members + 1] = id
      end
    end
    call('DEL', scratch)
    call_many('ZADD', scratch, members)
    local ids = call('ZRANGE', scratch, 0, -1)
    call('DEL', scratch)
    return ids
  end

  -- Cuts a chunk in two, sorted.
  local function split(start)
    local ids = living_ids(call('GET', T .. 'i:' .. start))
    call('HDEL', T .. 'in', start)
    for from = 1, math.max(#ids, 1), 256 do
      local first = from == 1 and start or ids[from]
      call('ZADD', T .. 'i', 0, first)
      call('SET', T .. 'i:' .. first, table.concat(ids, '', from, math.min(from + 255, #ids)))
    end
  end

  -- A job is gone whose id is in this chunk.
  local function remove(start)
    local key = T .. 'i:' .. start
    local all, gone = call('STRLEN', key) / 16, call('HINCRBY', T .. 'in', start, 1)
    if gone < all and gone * 4 < all * 3 then return end
    local kept = table.concat(living_ids(call('GET', key) or ''))  -- it may be evicted
    call('HDEL', T .. 'in', start)
    if kept == '' then
      call('DEL', key)
      call('ZREM', T .. 'i', start)
    else
      call('SET', key, kept)
    end
  end

  return split, remove
end

-- Whether an id comes behind all of a chunk's text. As numbers, for Lua's `<` on strings minds the
-- locale; from the end, where those stand that came last.
local function is_behind(id, text)
  local a, b, c = read('>I6I5I5', id)
  for till = #text, 16, -512 do
    local from = math.max(till - 511, 1)
    local parts = { read('>' .. string.rep('I6I5I5', (till - from + 1) / 16), text, from) }
    for n = 1, #parts - 3, 3 do
      local x, y = parts[n], parts[n + 1]
      if x > a or x == a and (y > b or y == b and parts[n + 2] >= c) then return false end
    end
  end
  return true
end

-- Ids in order, from now on in chunks of their own, of which this is the first start.
local function index_run(start, ids)
  for from = 1, #ids, 512 do
    local first = from == 1 and start or ids[from]
    call('ZADD', T .. 'i', 0, first)
    call('SET', T .. 'i:' .. first, table.concat(ids, '', from, math.min(from + 511, #ids)))
  end
end

-- Which chunk each of some ids belongs to, all of them between the lowest and the highest: the
-- starts of the chunks and the ids of each; one that is to begin is new.
local function index_parts(ids, lowest, highest)
  local start = chunk_of(lowest)
  if start == chunk_of(highest) then
    return { { start = start or NOBODY, new = not start, ids = ids } }
  end
  local parts, by_start = {}, {}
  for _, id in ipairs(ids) do
    local own = chunk_of(id)
    local part = by_start[own or NOBODY]
    if not part then
      part = { start = own or NOBODY, new = not own, ids = {} }
      by_start[part.start] = part
      parts[#parts + 1] = part
    end
    part.ids[#part.ids + 1] = id
  end
  return parts
end

-- Takes ids in, in order or not, when the parts of each chunk and its size are known. Each chunk
-- gets all of its own before it may be cut: an id that was there before must not be found alive in
-- it and then come a second time.
local function index_add(parts, in_order)
  local is_run = in_order and #parts == 1
  for _, part in ipairs(parts) do
    local start, ids = part.start, part.ids
    if is_run and part.new then
      index_run(start, ids)
    elseif is_run and part.size + 16 * #ids > CHUNK_SIZE
      and is_behind(ids[1], call('GET', T .. 'i:' .. start)) then
      index_run(ids[1], ids)
    else
      if part.new then call('ZADD', T .. 'i', 0, start) end
      if call('APPEND', T .. 'i:' .. start, table.concat(ids)) > 2 * CHUNK_SIZE then
        index_upkeep()(start)
      end
    end
  end
end
