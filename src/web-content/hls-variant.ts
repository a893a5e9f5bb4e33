import { SluiceError } from "../base/errors.ts";
import type { HlsMaster, HlsRendition, HlsVariant } from "../media/hls-master.ts";
import { languageCode } from "../media/language.ts";
import type { VariantFacts } from "../transfer/segment-source.ts";

/** Codecs that every player supports in MPEG-TS: H.264 and AAC. */
const COMMON = /^(?:avc[13]|mp4a)(?:\.|$)/i;

/** What the choice of a variant depends on. */
type Choosable = Pick<HlsVariant, "bitsPerSecond" | "width" | "height" | "codecs">;

/** Which variant of a stream a player asks for. */
export interface VariantOptions {
  /** The maximum height in pixels. */
  readonly maxHeight?: number | undefined;
  /** The index in the manifest; negative for automatic choice. */
  readonly variantIndex?: number | undefined;
}

/**
 * Returns the index of the variant to play. Throws `bad_parameter` if `options.variantIndex` does not exist.
 *
 * CHOICE(hls-variant): take the variant with the highest bit rate, and prefer H.264 with AAC because these play
 * everywhere. With `maxHeight`, take the best variant that is no higher, or the lowest if all are higher.
 */
export function chooseVariant(
  { variants }: { readonly variants: readonly Choosable[] },
  options: VariantOptions = {},
): number {
  const { maxHeight, variantIndex = -1 } = options;
  if (variantIndex >= variants.length) {
    const what = `stream_id: expected at most ${variants.length - 1}, got ${variantIndex}`;
    throw new SluiceError("bad_parameter", what);
  }
  if (variantIndex >= 0) return variantIndex;
  const numbered = variants.map((variant, index) => ({ variant, index }));
  const best = (some: typeof numbered) =>
    some.sort(
      ({ variant: a }, { variant: b }) =>
        compatibility(b) - compatibility(a) || b.bitsPerSecond - a.bitsPerSecond,
    )[0]!.index;
  if (maxHeight === undefined || maxHeight <= 0) return best(numbered);
  const known = numbered.filter(({ variant }) => variant.height !== undefined);
  const low = known.filter(({ variant }) => variant.height! <= maxHeight);
  if (low.length > 0) return best(low);
  if (known.length === 0) return best(numbered);
  return known.reduce((a, b) => (b.variant.height! < a.variant.height! ? b : a)).index;
}

/** Returns the renditions of one type in the group of a variant, in manifest order. */
export function renditionsOf(
  { renditions }: HlsMaster,
  variant: HlsVariant,
  type: "audio" | "subtitles",
): HlsRendition[] {
  const group = type === "audio" ? variant.audioGroup : variant.subtitleGroup;
  return renditions.filter((rendition) => rendition.type === type && rendition.group === group);
}

/** Returns the default rendition: the one in `language`, else the `DEFAULT=YES` one, else the first. */
export function defaultRendition(
  renditions: readonly HlsRendition[],
  language: string | undefined,
): HlsRendition | undefined {
  const inLanguage =
    language === undefined
      ? undefined
      : renditions.find((rendition) => languageCode(rendition.language) === languageCode(language));
  return inLanguage ?? renditions.find(({ isDefault }) => isDefault) ?? renditions[0];
}

/** Describes a variant for the session's list of streams. */
export function variantFacts(variant: HlsVariant): VariantFacts {
  const { bitsPerSecond, averageBitsPerSecond, width, height, codecs } = variant;
  return { bitsPerSecond, averageBitsPerSecond, width, height, codecs, isAudio: !hasVideo(variant) };
}

function compatibility(variant: Choosable): number {
  const isCommon = variant.codecs.every((codec) => COMMON.test(codec));
  return (hasVideo(variant) ? 2 : 0) + (isCommon ? 1 : 0);
}

function hasVideo({ codecs, width }: Choosable): boolean {
  return (
    width !== undefined || codecs.length === 0 || codecs.some((codec) => !/^(?:mp4a|[ae]c-)/i.test(codec))
  );
}
