import { SluiceError } from "../../base/errors.ts";
import type { HlsMaster, HlsRendition, HlsVariant } from "../../media/hls-master.ts";
import { languageCode } from "../../media/language.ts";
import type { VariantFacts } from "../segment-source.ts";

/** Codecs that every player of MPEG-TS knows. */
const COMMON = /^(?:avc[13]|mp4a)(?:\.|$)/i;

/** What a player wishes of a stream that comes in several forms. */
export interface VariantWish {
  /** At most this height, in pixels. */
  readonly maxHeight?: number | undefined;
  /** Which of the list, from 0; below 0 for ours. */
  readonly variantIndex?: number | undefined;
}

/**
 * CHOICE(hls-variant): of several forms of a stream the one with the most bits is taken, of H.264 and AAC where there is
 * one: what is passed on must play everywhere. Under a wished height the best that is no higher, else the lowest.
 * Returns its index; throws `bad_parameter` where a form is wished that is not there.
 */
export function chooseVariant({ variants }: HlsMaster, wish: VariantWish = {}): number {
  const { maxHeight, variantIndex = -1 } = wish;
  if (variantIndex >= variants.length) {
    const what = `stream_id: expected at most ${variants.length - 1}, got ${variantIndex}`;
    throw new SluiceError("bad_parameter", what);
  }
  if (variantIndex >= 0) return variantIndex;
  const numbered = variants.map((variant, index) => ({ variant, index }));
  const best = (some: typeof numbered) =>
    some.sort(
      ({ variant: a }, { variant: b }) => worth(b) - worth(a) || b.bitsPerSecond - a.bitsPerSecond,
    )[0]!.index;
  if (maxHeight === undefined || maxHeight <= 0) return best(numbered);
  const known = numbered.filter(({ variant }) => variant.height !== undefined);
  const low = known.filter(({ variant }) => variant.height! <= maxHeight);
  if (low.length > 0) return best(low);
  if (known.length === 0) return best(numbered);
  return known.reduce((a, b) => (b.variant.height! < a.variant.height! ? b : a)).index;
}

/** The renditions of one kind that belong to a variant, in the order of the manifest. */
export function renditionsOf(
  { renditions }: HlsMaster,
  variant: HlsVariant,
  type: "audio" | "subtitles",
): HlsRendition[] {
  const group = type === "audio" ? variant.audioGroup : variant.subtitleGroup;
  return renditions.filter((rendition) => rendition.type === type && rendition.group === group);
}

/** The rendition a player hears where it chooses none: in its language, else what the manifest says, else the first. */
export function defaultRendition(
  renditions: readonly HlsRendition[],
  language: string | undefined,
): HlsRendition | undefined {
  const wished =
    language === undefined
      ? undefined
      : renditions.find((rendition) => languageCode(rendition.language) === languageCode(language));
  return wished ?? renditions.find(({ isDefault }) => isDefault) ?? renditions[0];
}

/** A variant as it is shown to who may choose. */
export function variantFacts(variant: HlsVariant): VariantFacts {
  const { bitsPerSecond, averageBitsPerSecond, width, height, codecs } = variant;
  return { bitsPerSecond, averageBitsPerSecond, width, height, codecs, isAudio: !isPicture(variant) };
}

function worth(variant: HlsVariant): number {
  const isCommon = variant.codecs.every((codec) => COMMON.test(codec));
  return (isPicture(variant) ? 2 : 0) + (isCommon ? 1 : 0);
}

function isPicture({ codecs, width }: HlsVariant): boolean {
  return (
    width !== undefined || codecs.length === 0 || codecs.some((codec) => !/^(?:mp4a|[ae]c-)/i.test(codec))
  );
}
