import { SluiceError } from "../../base/errors.ts";
import type { HlsMaster, HlsVariant } from "../../media/hls-master.ts";

/** Codecs that every player of MPEG-TS knows. */
const COMMON = /^(?:avc[13]|mp4a)(?:\.|$)/i;

/**
 * CHOICE(hls-variant): of several forms of a stream the one with the most bits is taken, of H.264 and AAC where there is
 * one, and with its sound in it: what is passed on must play everywhere. Throws `unsupported_content` where every form has
 * its sound in a playlist of its own.
 */
export function chooseVariant({ variants, renditions }: HlsMaster): HlsVariant {
  const hasOwnSound = ({ audioGroup }: HlsVariant) =>
    audioGroup === undefined ||
    !renditions.some(({ type, group, uri }) => type === "audio" && group === audioGroup && uri !== undefined);
  const whole = variants.filter(hasOwnSound);
  const best = whole.sort((a, b) => worth(b) - worth(a) || b.bitsPerSecond - a.bitsPerSecond)[0];
  if (best) return best;
  const what =
    "this HLS stream has picture and sound in playlists of their own, which are not put together yet";
  throw new SluiceError("unsupported_content", what);
}

function worth({ codecs, width }: HlsVariant): number {
  const isCommon = codecs.every((codec) => COMMON.test(codec));
  const isPicture =
    width !== undefined || codecs.length === 0 || codecs.some((codec) => !/^mp4a/i.test(codec));
  return (isPicture ? 2 : 0) + (isCommon ? 1 : 0);
}
