import { DecodeError, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { MagnetOfInfohash } from "../wire/magnet.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/metainfo.ts";
import { probeUrl } from "./http/probe.ts";
import { type FileChecks, type KnownFile, readKnownFile } from "./known-file.ts";

/** What fetching a magnet's transport file takes. */
export interface ExactSourceParts {
  readonly runtime: FileChecks;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** So many URLs of one link are asked, all at once. */
const MAX_SOURCES = 2;
/**
 * CHOICE(exact-source): the transport file that a magnet names by URL (`xs`) is waited for so long; then peers are asked.
 * It saves a connection to peers and brings what the info dictionary lacks, but a dead server must not cost the start.
 */
const TIMEOUT_MS = 2_000;

/** The transport file from the URLs that a magnet names, where one of them has it in time and it is that of the magnet's
 * infohash. Rejects only where the asker's signal fires. */
export async function exactSource(
  parts: ExactSourceParts,
  magnet: Pick<MagnetOfInfohash, "infohash" | "exactSources">,
  options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal | undefined },
): Promise<KnownFile | undefined> {
  const done = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, done.signal]) : done.signal;
  const fetched = magnet.exactSources.slice(0, MAX_SOURCES).map(async (url) => {
    const probed = await probeUrl(parts.outbound, url, {
      allowPrivate: options.allowPrivateUrls,
      limitBytes: MAX_TRANSPORT_FILE_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (probed.kind !== "bytes") throw new SluiceError("bad_transport_file", "media came");
    const known = readKnownFile(probed.bytes, parts.runtime);
    if (known.file.infohash === magnet.infohash) return known;
    throw new SluiceError("bad_transport_file", `the transport file of ${known.file.infohash} came`);
  });
  try {
    return await Promise.any(fetched);
  } catch (thrown) {
    options.signal?.throwIfAborted();
    // None was named (an empty list fails too), or none was right: bugs are not hidden here.
    for (const reason of (thrown as AggregateError).errors) {
      if (!(reason instanceof SluiceError || reason instanceof DecodeError)) throw reason;
      const { infohash } = magnet;
      parts.log.info("no transport file where the link says", { infohash, reason: reason.message });
    }
    return undefined;
  } finally {
    done.abort(new SluiceError("cancelled", "no longer needed"));
  }
}
