import { type ManifestPart, type ManifestSegment, writeMediaManifest } from "../../media/manifest.ts";
import type { ListedSegment } from "../../transfer/piece-segments.ts";
import type { ManifestPlace } from "../../transfer/segment-source.ts";
import type { LiveWindow } from "./live-window.ts";
import { partTargetMs } from "./live-window-parts.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Listed duration: enough for players that start further behind, and short enough to be reloaded every second. */
const LISTED_MS = 60_000;
/** RFC 8216 6.2.2: a manifest shall not be shorter than three target durations. */
const MIN_SEGMENTS = 3;
const MAX_SEGMENTS = 128;
/** Up to this many missing segments are listed as gaps; after a larger gap the list begins. */
const MAX_GAPS = 16;
/** Number of complete segments at the end whose parts are listed, gaps included; parts of the open one are listed as
 * well. Players that use parts are never further behind (RFC 8216bis 6.2.2: at most three target durations). */
const SEGMENTS_WITH_PARTS = 2;
/** RFC 8216bis 4.4.3.8: players shall stay at least two part durations behind the end, three are recommended. */
const HOLD_BACK_PARTS = 3;

/** Returns the segments of a manifest whose last one ends at `untilMs` or earlier. The result moves forward only. */
export function listedSegments(
  segments: readonly KeptSegment[],
  untilMs: number,
  mostMs = LISTED_MS,
): readonly KeptSegment[] {
  const listed: KeptSegment[] = [];
  let listedMs = 0;
  for (let index = segments.length - 1; index >= 0 && listed.length < MAX_SEGMENTS; index--) {
    const segment = segments[index]!;
    if (!segment.isListable || segment.endMs > untilMs) continue;
    const later = listed.at(-1);
    if (later && later.facts.number - segment.facts.number - 1 > MAX_GAPS) break;
    if (listedMs >= mostMs && listed.length >= MIN_SEGMENTS) break;
    listed.push(segment);
    listedMs += segment.durationMs;
  }
  return listed.reverse();
}

/** What is special about the start and the end of a manifest. */
interface ManifestEnds {
  /** It includes the parts of the last segments, and players may wait for the next one. */
  readonly isAtEdge: boolean;
  /** No segment will follow. */
  readonly isEnded: boolean;
  /** Segments before the first listed one that are not in the window. */
  readonly earlier: readonly ListedSegment[];
}

/** Writes the manifest of these segments. */
export function writeLiveManifest(
  window: LiveWindow,
  listed: readonly KeptSegment[],
  place: ManifestPlace,
  { isAtEdge, isEnded, earlier }: ManifestEnds,
): string {
  const { urls, isDelta = false, cuts = [] } = place;
  const urlOf = (number: number, ending = "ts") => urls.segment(number, ending);
  const partsOf = ({ facts, parts }: KeptSegment): ManifestPart[] =>
    parts.map(({ durationMs, isIndependent }, part) => ({
      uri: urlOf(facts.number, `p${part}.ts`),
      durationSeconds: durationMs / 1000,
      isIndependent,
    }));
  const { longestMs, pieceMs } = window;
  const newest = listed.at(-1)?.facts.number ?? 0;
  const open = isAtEdge && !isEnded ? openSegment(window, newest) : undefined;
  const withParts = isAtEdge
    ? listed.slice(-SEGMENTS_WITH_PARTS).filter(({ facts }) => facts.number > newest - SEGMENTS_WITH_PARTS)
    : [];
  const before = earlier.map(
    ({ number, startMs, durationMs }): ManifestSegment => ({
      uri: urlOf(number),
      durationSeconds: durationMs / 1000,
      programDateTimeMs: startMs,
    }),
  );
  const entries = listed.flatMap((segment, index): ManifestSegment[] => {
    const { facts, durationMs, isDiscontinuous } = segment;
    return [
      ...gapsBetween(listed[index - 1], segment, longestMs).map((gap) => ({
        ...gap,
        uri: urlOf(gap.number),
      })),
      {
        uri: urlOf(facts.number),
        durationSeconds: durationMs / 1000,
        isDiscontinuous: isDiscontinuous || cuts.includes(facts.number),
        programDateTimeMs: facts.startMs,
        ...(withParts.includes(segment) && { parts: partsOf(segment) }),
      },
    ];
  });
  const [first] = listed;
  const cutsBefore = ({ facts }: KeptSegment) => cuts.filter((cut) => cut < facts.number).length;
  const partTargetSeconds = partTargetMs(pieceMs) / 1000;
  return writeMediaManifest({
    kind: "live",
    firstNumber: earlier[0]?.number ?? first?.facts.number ?? 0,
    firstDiscontinuity: first ? first.discontinuity - (first.isDiscontinuous ? 1 : 0) + cutsBefore(first) : 0,
    targetSeconds: longestMs / 1000,
    segments: [...before, ...entries],
    isEnded,
    isDelta,
    ...(isAtEdge &&
      !isEnded && {
        lowLatency: { partTargetSeconds, holdBackSeconds: HOLD_BACK_PARTS * partTargetSeconds },
      }),
    ...(open && {
      openParts: partsOf(open),
      openStart: {
        isDiscontinuous: open.isDiscontinuous || cuts.includes(open.facts.number),
        programDateTimeMs: open.facts.startMs,
      },
    }),
    ...(open?.isCutting && { preloadHintUri: urlOf(open.facts.number, `p${open.parts.length}.ts`) }),
  });
}

/** Returns the open segment if its number is `number + 1`, so that players take it as the next one. */
export function openSegment({ segments }: LiveWindow, number: number): KeptSegment | undefined {
  const last = segments.at(-1);
  return last?.isListed && !last.isClosed && !last.isGone && last.facts.number === number + 1
    ? last
    : undefined;
}

/** Returns the missing segments between two listed ones, with the duration of the gap. */
function gapsBetween(before: KeptSegment | undefined, segment: KeptSegment, longestMs: number) {
  if (!before) return [];
  const count = segment.facts.number - before.facts.number - 1;
  const eachMs = (segment.facts.startMs - before.endMs) / count;
  const durationSeconds = Math.min(longestMs, Math.max(1, eachMs)) / 1000;
  return Array.from({ length: count }, (_, index) => ({
    number: before.facts.number + 1 + index,
    durationSeconds,
    isGap: true,
  }));
}
