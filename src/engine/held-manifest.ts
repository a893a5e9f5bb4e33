import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import { underEither } from "../remux/either-signal.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ManifestRendition } from "./engine.ts";
import { orAborted } from "./segment-cache.ts";
import type { ManifestPlace, SegmentSource } from "./segment-source.ts";

/**
 * CHOICE(held-reload): a live manifest that is wanted with what comes next is held so long; then it is given as it is. A
 * source may be silent for long, and a player that hears nothing gives up.
 */
const HELD_MS = 8_000;

/** The manifest of a source, where its asker waits for what is new (RFC 8216bis 6.2.5.2); it is never held for ever. */
export async function heldManifest(
  clock: Clock,
  source: SegmentSource,
  place: ManifestPlace,
  rendition: ManifestRendition,
  signal: AbortSignal,
): Promise<string> {
  const { reload, ...now } = place;
  if (!reload || !source.isLive) return source.manifest(now, rendition, signal);
  const late = new AbortController();
  const cancel = clock.at(after(clock.now(), HELD_MS), () =>
    late.abort(new SluiceError("cancelled", "the manifest was held for long enough")),
  );
  try {
    return await underEither(signal, late.signal, (stop) =>
      orAborted(source.manifest(place, rendition, stop), stop),
    );
  } catch (thrown) {
    if (!late.signal.aborted || signal.aborted) throw thrown;
    return source.manifest(now, rendition, signal);
  } finally {
    cancel();
  }
}
