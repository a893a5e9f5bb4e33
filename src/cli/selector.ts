import { readFile, stat } from "node:fs/promises";
import { messageOf, SluiceError } from "../base/errors.ts";
import { parseContentId, parseInfohash } from "../base/ids.ts";
import type { ContentSelector } from "../engine/contract.ts";
import { usageError } from "./usage.ts";

/** A transport file is never larger (the same limit holds for those that are fetched or posted). */
const MAX_TRANSPORT_FILE_BYTES = 10_000_000;

/** What the user named: a magnet, an infohash, a content id as `acestream://…`, a URL, or the path of a transport file. */
export async function selectorOf(named: string): Promise<ContentSelector> {
  if (/^magnet:/i.test(named)) return { kind: "magnet", magnet: named };
  if (/^https?:\/\//i.test(named)) return { kind: "url", url: named };
  const scheme = /^acestream:\/\/([0-9a-f]{40})$/i.exec(named);
  const contentId = scheme === null ? undefined : parseContentId(scheme[1]!);
  if (contentId !== undefined) return { kind: "content_id", contentId };
  const infohash = parseInfohash(named);
  if (infohash !== undefined) return { kind: "infohash", infohash };
  return { kind: "transport_file", bytes: await readTransportFile(named) };
}

async function readTransportFile(path: string): Promise<Uint8Array> {
  try {
    const { size } = await stat(path);
    if (size > MAX_TRANSPORT_FILE_BYTES) {
      throw usageError(`${path} is ${size} bytes; a transport file has at most ${MAX_TRANSPORT_FILE_BYTES}`);
    }
    return await readFile(path);
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw usageError(
      `"${path}" is neither a magnet, an infohash, a URL nor a file that can be read (${messageOf(error)})`,
    );
  }
}
