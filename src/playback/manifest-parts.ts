import type { ManifestPlace } from "../transfer/segment-source.ts";

/** Tags of parts (RFC 8216bis 4.4.3.7, 4.4.3.8, 4.4.4.9, 4.4.5.3). */
const PART_TAGS = /^#EXT-X-(PART|PART-INF|PRELOAD-HINT|SERVER-CONTROL)[:-].*\n/gm;

/** Returns a live manifest that lists whole segments only. */
export function withoutParts(manifest: string): string {
  return manifest.replace(PART_TAGS, "");
}

/** Returns the request for a manifest without parts: its players do not wait for a part, and cannot apply delta updates. */
export function wholeSegments({ isDelta: _, reload, ...whole }: ManifestPlace): ManifestPlace {
  return { ...whole, ...(reload && { reload: { segment: reload.segment, part: undefined } }) };
}
