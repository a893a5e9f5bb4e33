import { DecodeError } from "../base/errors.ts";
import { type HlsAttributes, hlsNumber, readHlsAttributes } from "./hls-attributes.ts";
import type { HlsValues } from "./hls-variables.ts";

/** A master playlist (RFC 8216 4.3.4). */
export interface HlsMaster {
  readonly kind: "master";
  /** In the order of the manifest; at least one. */
  readonly variants: readonly HlsVariant[];
  readonly renditions: readonly HlsRendition[];
  /** The variables that its media manifests may import. */
  readonly variables: HlsValues;
}

/** A variant stream (`#EXT-X-STREAM-INF`, RFC 8216 4.3.4.2). */
export interface HlsVariant {
  /** Unresolved; relative to the manifest's URL. */
  readonly uri: string;
  /** Peak bit rate; 0 if not stated. */
  readonly bitsPerSecond: number;
  readonly averageBitsPerSecond: number | undefined;
  /** In pixels; undefined for audio, and if not stated. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  /** RFC 6381; empty if not stated. */
  readonly codecs: readonly string[];
  /** The group ids of its renditions. */
  readonly audioGroup: string | undefined;
  readonly subtitleGroup: string | undefined;
}

/** An alternative rendition (`#EXT-X-MEDIA`, RFC 8216 4.3.4.1). */
export interface HlsRendition {
  readonly type: "audio" | "video" | "subtitles" | "closed-captions";
  readonly group: string;
  readonly name: string;
  /** RFC 5646, such as `en`. */
  readonly language: string | undefined;
  /** Undefined if the variant itself carries it. */
  readonly uri: string | undefined;
  readonly isDefault: boolean;
  readonly isForced: boolean;
}

/** Limits for hostile manifests; the largest services have about fifty variants. */
const MAX_VARIANTS = 500;
const MAX_RENDITIONS = 500;
const TYPES = {
  AUDIO: "audio",
  VIDEO: "video",
  SUBTITLES: "subtitles",
  "CLOSED-CAPTIONS": "closed-captions",
} as const;

/** Builds an {@link HlsMaster} from the lines of a manifest. */
export class HlsMasterBuilder {
  readonly #variants: HlsVariant[] = [];
  readonly #renditions: HlsRendition[] = [];
  #pending: HlsAttributes | undefined;

  /** True if the next URI belongs to a variant. */
  get awaitsUri(): boolean {
    return this.#pending !== undefined;
  }

  /** Processes a tag; ignores tags of media playlists. */
  tag(name: string, value: string): void {
    if (name === "EXT-X-STREAM-INF") this.#pending = readHlsAttributes(value);
    else if (name === "EXT-X-MEDIA") this.#rendition(readHlsAttributes(value));
  }

  /** Adds the variant of the last `#EXT-X-STREAM-INF`. Throws `DecodeError` at the variant limit. */
  uri(uri: string, offset: number): void {
    if (this.#variants.length === MAX_VARIANTS)
      throw new DecodeError("HLS manifest", offset, `more than ${MAX_VARIANTS} variants`);
    this.#variants.push(variantOf(uri, this.#pending!));
    this.#pending = undefined;
  }

  finish(variables: HlsValues): HlsMaster {
    return { kind: "master", variants: this.#variants, renditions: this.#renditions, variables };
  }

  #rendition(attributes: HlsAttributes): void {
    const type = TYPES[attributes.get("TYPE") as keyof typeof TYPES];
    const group = attributes.get("GROUP-ID");
    if (!type || group === undefined || this.#renditions.length === MAX_RENDITIONS) return;
    this.#renditions.push({
      type,
      group,
      name: attributes.get("NAME") ?? "",
      language: attributes.get("LANGUAGE") || undefined,
      uri: attributes.get("URI") || undefined,
      isDefault: attributes.get("DEFAULT") === "YES",
      isForced: attributes.get("FORCED") === "YES",
    });
  }
}

function variantOf(uri: string, attributes: HlsAttributes): HlsVariant {
  const size = /^(\d{1,5})x(\d{1,5})$/i.exec(attributes.get("RESOLUTION") ?? "");
  const codecs = (attributes.get("CODECS") ?? "").split(",").map((codec) => codec.trim());
  return {
    uri,
    bitsPerSecond: hlsNumber(attributes.get("BANDWIDTH")) ?? 0,
    averageBitsPerSecond: hlsNumber(attributes.get("AVERAGE-BANDWIDTH")),
    width: size ? Number(size[1]) : undefined,
    height: size ? Number(size[2]) : undefined,
    codecs: codecs.filter((codec) => codec !== ""),
    audioGroup: attributes.get("AUDIO") || undefined,
    subtitleGroup: attributes.get("SUBTITLES") || undefined,
  };
}
