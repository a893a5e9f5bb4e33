import { readFile, stat } from "node:fs/promises";
import { messageOf, SluiceError } from "../base/errors.ts";
import { parseInfohash } from "../base/ids.ts";
import { parseLink } from "../base/link.ts";
import type { ContentSelector } from "../transfer/contract.ts";
import { usageError } from "./args.ts";

/** Maximum size of a transport file, in bytes; downloads and uploads have the same limit. */
const MAX_TRANSPORT_FILE_BYTES = 10_000_000;

/**
 * What the user named: a magnet, an infohash, a link of this program (`sluice:?magnet=…`), a content id as `sluice://…` or
 * `acestream://…`, a URL, or the path of a transport file. Rejects with a usage error.
 */
export async function selectorOf(named: string): Promise<ContentSelector> {
  if (/^magnet:/i.test(named)) return { kind: "magnet", magnet: named };
  if (/^https?:\/\//i.test(named)) return { kind: "url", url: named };
  if (/^(?:acestream|sluice):/i.test(named)) return linkSelector(named);
  const infohash = parseInfohash(named);
  if (infohash !== undefined) return { kind: "infohash", infohash };
  return { kind: "transport_file", bytes: await readTransportFile(named) };
}

function linkSelector(named: string): ContentSelector {
  const link = parseLink(named);
  switch (link?.kind) {
    case "magnet":
      return { kind: "magnet", magnet: link.magnet };
    case "content_id":
      return { kind: "content_id", contentId: link.contentId };
    case "infohash":
      return { kind: "infohash", infohash: link.infohash };
    case "url":
      return { kind: "url", url: link.url };
    case undefined:
      throw usageError(
        `the link "${named.slice(0, 200)}" is invalid; expected sluice:?magnet=… or sluice://<content id>`,
      );
  }
}

async function readTransportFile(path: string): Promise<Uint8Array> {
  try {
    const { size } = await stat(path);
    if (size > MAX_TRANSPORT_FILE_BYTES) {
      throw usageError(`${path} is ${size} bytes; a transport file has at most ${MAX_TRANSPORT_FILE_BYTES}`);
    }
    // Slices of a Buffer share its memory, slices of a Uint8Array are copies.
    return new Uint8Array(await readFile(path));
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw usageError(
      `"${path}" is not a magnet, an infohash, a URL or a readable file (${messageOf(error)})`,
    );
  }
}
