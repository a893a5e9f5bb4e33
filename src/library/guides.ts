import { SluiceError } from "../base/errors.ts";
import { M3uReader } from "../media/m3u.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { MAX_GUIDE_LENGTH, MAX_GUIDES } from "./external-record.ts";
import { explained } from "./import-entries.ts";

/** Guides are named in front of the entries. */
const MAX_HEAD_BYTES = 256 * 1024;
/** Somebody waits for it. */
const TIMEOUT_MS = 9_000;

/**
 * The URLs of the programme guides that the playlist at `url` names. Rejects with `not_a_playlist`, and with what the
 * outbound client rejects with.
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
      throw new SluiceError("url_unreachable", `the server of the playlist answered ${status}`);
    const reader = new M3uReader();
    let length = 0;
    for (;;) {
      const { done, value } = await source.read();
      const entries = explained(() => (done ? reader.end() : reader.push(value.subarray(0, MAX_HEAD_BYTES))));
      length += value?.length ?? 0;
      if (done || entries.length > 0 || reader.kind === "hls" || length >= MAX_HEAD_BYTES)
        return boundedGuides(reader.header.guides);
    }
  } finally {
    await source.cancel().catch(() => {}); // Its head is all that was wanted.
  }
}

/** As many guides, and as long ones, as are kept. */
export function boundedGuides(guides: Iterable<string>): string[] {
  return [...new Set(guides)].filter((guide) => guide.length <= MAX_GUIDE_LENGTH).slice(0, MAX_GUIDES);
}
