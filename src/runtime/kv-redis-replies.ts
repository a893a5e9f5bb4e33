import { SluiceError } from "../base/errors.ts";

/** An entry of the log: `<revision>-0`, and its fields. */
export type LogEntry = [at: string, fields: ["id", string, "keys", string]];

/** Returns the error for a reply whose shape the command does not permit: the server is damaged, or another program. */
export function unexpectedReply(command: string): SluiceError {
  return new SluiceError(
    "store_unavailable",
    `the store's server: unexpected reply to ${command}; check that the URL names a Redis or Valkey server`,
  );
}

/** Decodes the reply of a script that begins with `numbers` integers, followed by values of keys. Throws `store_unavailable`. */
export function valuesReply(reply: unknown, command: string, numbers: number, values: number) {
  const all = listOf(reply, command);
  const [leading, rest] = [all.slice(0, numbers), all.slice(numbers)];
  if (leading.length < numbers || !leading.every((each) => Number.isSafeInteger(each)))
    throw unexpectedReply(command);
  if (rest.length > values || !rest.every((each) => each === null || typeof each === "string"))
    throw unexpectedReply(command);
  return { numbers: leading as number[], values: rest as (string | null)[] };
}

/** Decodes the revision and the id of a commit. Throws `store_unavailable`. */
export function positionReply(reply: unknown): [revision: number, commit: string] {
  const { numbers, values } = valuesReply(reply, "EVALSHA (position)", 1, 1);
  if (typeof values[0] !== "string") throw unexpectedReply("EVALSHA (position)");
  return [numbers[0]!, values[0]];
}

/** Decodes a page of HSCAN: the next cursor, and keys with their values. Throws `store_unavailable`. */
export function pageReply(reply: unknown): [cursor: string, page: readonly string[]] {
  const [cursor, page] = listOf(reply, "HSCAN");
  const all = listOf(page, "HSCAN");
  if (typeof cursor !== "string" || all.length % 2 !== 0 || !all.every((each) => typeof each === "string"))
    throw unexpectedReply("HSCAN");
  return [cursor, all as string[]];
}

/** Decodes the answer of XREAD for one stream. Throws `store_unavailable`. */
export function logReply(reply: unknown): readonly LogEntry[] {
  const [stream] = listOf(reply, "XREAD");
  const entries = listOf(listOf(stream, "XREAD")[1], "XREAD");
  for (const entry of entries) {
    const [at, fields] = listOf(entry, "XREAD");
    const texts = [at, ...listOf(fields, "XREAD")];
    if (texts.length !== 5 || !texts.every((each) => typeof each === "string"))
      throw unexpectedReply("XREAD");
  }
  if (entries.length === 0) throw unexpectedReply("XREAD");
  return entries as LogEntry[];
}

function listOf(reply: unknown, command: string): readonly unknown[] {
  if (!Array.isArray(reply)) throw unexpectedReply(command);
  return reply;
}
