import { DecodeError, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { type FileChecks, type KnownFile, readKnownFile } from "../storage/known-file.ts";
import { probeUrl } from "../web-content/probe.ts";
import type { MagnetOfInfohash } from "../wire/torrent/magnet.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/torrent/metainfo.ts";

interface Dependencies {
  readonly runtime: FileChecks;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** The first URLs of a link are requested in parallel; the rest are ignored. */
const MAX_SOURCES = 2;
/**
 * CHOICE(exact-source): wait this long for the transport file that a magnet names by URL (`xs`), then ask peers.
 * The file starts playback without peers and has fields that the info dictionary lacks, but a dead server must not delay
 * the start.
 */
const TIMEOUT_MS = 2_000;

/** A transport file from a server, and whether its URLs and peers may have private addresses. */
interface FetchedFile {
  readonly known: KnownFile;
  readonly allowPrivateUrls: boolean;
}

/** Fetches the transport file from the `xs` URLs of a magnet. Returns undefined if no server sends the file of the magnet's
 * infohash in time. Rejects only if `options.signal` fires. */
export async function exactSource(
  deps: Dependencies,
  magnet: Pick<MagnetOfInfohash, "infohash" | "exactSources">,
  options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal | undefined },
): Promise<FetchedFile | undefined> {
  const done = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, done.signal]) : done.signal;
  const fetched = magnet.exactSources.slice(0, MAX_SOURCES).map(async (url) => {
    const probed = await probeUrl(deps.outbound, url, {
      allowPrivate: options.allowPrivateUrls,
      limitBytes: MAX_TRANSPORT_FILE_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (probed.kind !== "bytes") throw new SluiceError("bad_transport_file", "the URL returned media");
    const known = readKnownFile(probed.bytes, deps.runtime);
    if (known.file.infohash === magnet.infohash) return { known, allowPrivateUrls: probed.allowPrivate };
    throw new SluiceError(
      "bad_transport_file",
      `the URL returned the transport file of ${known.file.infohash}`,
    );
  });
  try {
    return await Promise.any(fetched);
  } catch (thrown) {
    options.signal?.throwIfAborted();
    // Expected failures are logged; anything else is a bug. An empty URL list ends here too, without reasons.
    for (const reason of (thrown as AggregateError).errors) {
      if (!(reason instanceof SluiceError || reason instanceof DecodeError)) throw reason;
      const { infohash } = magnet;
      deps.log.info("no valid transport file at a URL of the magnet link", {
        infohash,
        reason: reason.message,
      });
    }
    return undefined;
  } finally {
    done.abort(new SluiceError("cancelled", "no longer needed"));
  }
}
