/**
 * The commands of the store on the server. Each is one Lua script, so it runs as a whole or not at all. All keys have the same hash tag, as
 * Redis Cluster requires (cluster specification: hash tags).
 */

/** The keys of a store: a hash of the records, a sorted set of their names, the owner, and the last commit of each writer. */
export interface RedisKeys {
  readonly records: string;
  readonly names: string;
  readonly owner: string;
  readonly fence: string;
  /** Of this process. */
  readonly last: string;
}

/** Returns the keys of the store with this name; `writer` is unique for each process. */
export function redisKeys(name: string, writer: string): RedisKeys {
  const tag = `{sluice:${name}}`;
  return {
    records: `${tag}:records`,
    names: `${tag}:names`,
    owner: `${tag}:owner`,
    fence: `${tag}:fence`,
    last: `${tag}:last:${writer}`,
  };
}

/** The record of a writer's last commit stays this long: far longer than a commit whose answer was lost is repeated. */
const LAST_SECONDS = 86_400;

/**
 * KEYS: records, names, owner, last. ARGV: owner token (empty: a tool, which may write beside the owner), id of the commit, number of checks, of
 * deletions and of sets, then these: key and `=` with the expected JSON, or `-` if the key must be absent; key; key and JSON. Returns 1 if the
 * checks hold, 0 if not, -1 if the writer does not own the store. A commit that is repeated returns its first result, also after a change of the owner.
 */
export const COMMIT = `
if redis.call('HGET', KEYS[4], 'id') == ARGV[2] then return tonumber(redis.call('HGET', KEYS[4], 'result')) end
if ARGV[1] ~= '' and redis.call('GET', KEYS[3]) ~= ARGV[1] then return -1 end
local at, result = 6, 1
for _ = 1, tonumber(ARGV[3]) do
  local found = redis.call('HGET', KEYS[1], ARGV[at])
  local expected = ARGV[at + 1]
  if found then
    if '=' .. found ~= expected then result = 0 end
  elseif expected ~= '-' then
    result = 0
  end
  at = at + 2
end
if result == 1 then
  for _ = 1, tonumber(ARGV[4]) do
    redis.call('HDEL', KEYS[1], ARGV[at])
    redis.call('ZREM', KEYS[2], ARGV[at])
    at = at + 1
  end
  for _ = 1, tonumber(ARGV[5]) do
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], 0, ARGV[at])
    at = at + 2
  end
end
redis.call('HSET', KEYS[4], 'id', ARGV[2], 'result', result)
redis.call('EXPIRE', KEYS[4], ${LAST_SECONDS})
return result`;

/** KEYS: records, names. ARGV: lower bound of ZRANGEBYLEX, prefix, maximum. Returns names and values in turn, in byte order of the names. */
export const LIST = `
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], '+', 'LIMIT', 0, tonumber(ARGV[3]))) do
  if string.sub(name, 1, #ARGV[2]) ~= ARGV[2] then break end
  local value = redis.call('HGET', KEYS[1], name)
  found[#found + 1] = name
  found[#found + 1] = value or ''
end
return found`;

/** KEYS: owner, fence. ARGV: random text, milliseconds. Takes the lease; returns its token, or nil if another process has it. The number before the
 * colon only grows (fencing token). */
export const ACQUIRE = `
if redis.call('EXISTS', KEYS[1]) == 1 then return nil end
local token = redis.call('INCR', KEYS[2]) .. ':' .. ARGV[1]
redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
return token`;

/**
 * KEYS: owner, fence. ARGV: token, milliseconds. Renews the lease; also after it has expired, if no other process has had it since: then no
 * other owner has written. Returns 1, or 0 if the lease is lost.
 */
export const RENEW = `
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] or (not owner and redis.call('GET', KEYS[2]) == string.match(ARGV[1], '^%d+')) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0`;

/** KEYS: owner. ARGV: token. Gives the lease up if this process has it. */
export const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;
