/**
 * The commands of the store on the server. Each is one Lua script, so it runs as a whole or not at all. All keys have the same hash tag, as
 * Redis Cluster requires (cluster specification: hash tags).
 */

/** The keys of a store. */
export interface RedisKeys {
  /** A hash of the records. */
  readonly records: string;
  /** The number of commits that have changed records. */
  readonly revision: string;
  /** A stream of the latest commits: an entry `<revision>-0` names the writer, its commit and the keys. */
  readonly log: string;
  /** The last commit of this process and its result. */
  readonly last: string;
}

/** Returns the keys of the store with this name; `writer` is unique for each process. */
export function redisKeys(name: string, writer: string): RedisKeys {
  const tag = `{sluice:${name}}`;
  return {
    records: `${tag}:records`,
    revision: `${tag}:revision`,
    log: `${tag}:log`,
    last: `${tag}:last:${writer}`,
  };
}

/** The record of a writer's last commit stays this long: far longer than a commit whose answer was lost is repeated. */
const LAST_SECONDS = 86_400;
/** Commits that a process may be behind; beyond that it reads all records again. */
const LOG_ENTRIES = 1_000;
/** Separates the keys in an entry of the log; no key contains it. */
export const KEY_SEPARATOR = "\0";
/** Stands for the keys of a commit that has too many for the log. */
export const ALL_KEYS = "";

/**
 * KEYS: records, revision, log, last. ARGV: id of the commit, the changed keys for the log, number of checks, of deletions and of sets, then these:
 * key and `=` with the expected JSON, or `-` if the key must be absent; key; key and JSON. Returns 1 and the revision if the checks hold; 0, the
 * revision and the values of the checked keys if not. A commit that is repeated returns its first result.
 */
export const COMMIT = `
local id, checks, deletions, sets = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local result, revision
local last = redis.call('HMGET', KEYS[4], 'id', 'result', 'revision')
if last[1] == id then
  result, revision = tonumber(last[2]), tonumber(last[3])
else
  result = 1
  for at = 6, 4 + 2 * checks, 2 do
    local found = redis.call('HGET', KEYS[1], ARGV[at])
    if (found and '=' .. found or '-') ~= ARGV[at + 1] then result = 0 end
  end
  local at = 6 + 2 * checks
  if result == 1 and deletions + sets > 0 then
    if deletions > 0 then redis.call('HDEL', KEYS[1], unpack(ARGV, at, at + deletions - 1)) end
    at = at + deletions
    if sets > 0 then redis.call('HSET', KEYS[1], unpack(ARGV, at, at + 2 * sets - 1)) end
    revision = redis.call('INCR', KEYS[2])
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', ${LOG_ENTRIES}, revision .. '-0', 'id', id, 'keys', ARGV[2])
  else
    revision = tonumber(redis.call('GET', KEYS[2]) or 0)
  end
  redis.call('HSET', KEYS[4], 'id', id, 'result', result, 'revision', revision)
  redis.call('EXPIRE', KEYS[4], ${LAST_SECONDS})
end
if result == 1 then return {1, revision} end
local answer = {0, tonumber(redis.call('GET', KEYS[2]) or 0)}
for at = 6, 4 + 2 * checks, 2 do answer[#answer + 1] = redis.call('HGET', KEYS[1], ARGV[at]) end
return answer`;

/** KEYS: records, revision. ARGV: keys. Returns the revision, then their values. */
export const READ = `
local answer = redis.call('HMGET', KEYS[1], unpack(ARGV))
table.insert(answer, 1, tonumber(redis.call('GET', KEYS[2]) or 0))
return answer`;

/** KEYS: revision, log. ARGV: a revision, or nothing for the present one. Returns the present revision, and the id of the commit with the other one. */
export const POSITION = `
local revision = redis.call('GET', KEYS[1]) or '0'
local at = ARGV[1] ~= '' and ARGV[1] or revision
local entry = redis.call('XRANGE', KEYS[2], at .. '-0', at .. '-0')[1]
return {tonumber(revision), entry and entry[2][2] or ''}`;
