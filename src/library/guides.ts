import { SluiceError } from "../base/errors.ts";
import { M3uReader } from "../media/m3u.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { MAX_GUIDE_LENGTH, MAX_GUIDES } from "./external-record.ts";
import { withPlaylistErrors } from "./import-entries.ts";

/** Guides are named before the first entry. */
const MAX_HEAD_BYTES = 256 * 1024;
/** Short, because the user waits for it. */
const TIMEOUT_MS = 9_000;

/**
 * Returns the URLs of the program guides that the playlist at `url` names. Rejects with `not_a_playlist`, and with the
 * errors of the outbound client.
 */
export async function guidesOf(
  outbound: Pick<Outbound, "open">,
  url: string,
  options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
): Promise<string[]> {
  const { status, body } = await outbound.open(url, {
    limitBytes: Number.POSITIVE_INFINITY,
    allowPrivate: options.allowPrivateUrls,
    signal: options.signal,
    purpose: "playlist",
    headTimeoutMs: TIMEOUT_MS,
    idleTimeoutMs: TIMEOUT_MS,
    timeoutMs: TIMEOUT_MS,
  });
  const source = body.getReader();
  try {
    if (status !== 200)
      throw new SluiceError("url_unreachable", `the server of the playlist returned status ${status}`);
    const reader = new M3uReader();
    let length = 0;
    for (;;) {
      const { done, value } = await source.read();
      const read = () => (done ? reader.end() : reader.push(value.subarray(0, MAX_HEAD_BYTES)));
      const entries = withPlaylistErrors(read);
      length += value?.length ?? 0;
      if (done || entries.length > 0 || reader.kind === "hls" || length >= MAX_HEAD_BYTES)
        return boundedGuides(reader.header.guides);
    }
  } finally {
    await source.cancel().catch(() => {}); // The rest of the body is not used.
  }
}

/** Removes duplicates and guides beyond the limits. */
export function boundedGuides(guides: Iterable<string>): string[] {
  return [...new Set(guides)].filter((guide) => guide.length <= MAX_GUIDE_LENGTH).slice(0, MAX_GUIDES);
}
