import { DecodeError } from "../base/errors.ts";
import { type HlsAttributes, hlsNumber, readHlsAttributes } from "./hls-attributes.ts";

/** One stream in several forms (RFC 8216 4.3.4). */
export interface HlsMaster {
  readonly kind: "master";
  /** At least one, in the order of the manifest. */
  readonly variants: readonly HlsVariant[];
  readonly renditions: readonly HlsRendition[];
}

/** One form of a stream (`#EXT-X-STREAM-INF`). */
export interface HlsVariant {
  /** As it stands there; relative to the manifest's own URL. */
  readonly uri: string;
  /** The peak; 0 where it is not said. */
  readonly bitsPerSecond: number;
  readonly averageBitsPerSecond: number | undefined;
  /** Pixels; undefined for audio alone, and where it is not said. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  readonly frameRate: number | undefined;
  /** RFC 6381; empty where they are not said. */
  readonly codecs: readonly string[];
  /** The groups of the renditions that belong to it. */
  readonly audioGroup: string | undefined;
  readonly videoGroup: string | undefined;
  readonly subtitleGroup: string | undefined;
}

/** Another way to see or hear the same (`#EXT-X-MEDIA`). */
export interface HlsRendition {
  readonly type: "audio" | "video" | "subtitles" | "closed-captions";
  readonly group: string;
  readonly name: string;
  /** RFC 5646, such as `en`. */
  readonly language: string | undefined;
  /** Undefined where the variant itself carries it. */
  readonly uri: string | undefined;
  readonly isDefault: boolean;
  readonly isAutoSelect: boolean;
  readonly isForced: boolean;
  /** Audio channels. */
  readonly channels: number | undefined;
}

/** The largest services have about fifty. */
const MAX_VARIANTS = 500;
const MAX_RENDITIONS = 500;
const TYPES = {
  AUDIO: "audio",
  VIDEO: "video",
  SUBTITLES: "subtitles",
  "CLOSED-CAPTIONS": "closed-captions",
} as const;

/** Gathers what the lines of a master manifest say. */
export class HlsMasterBuilder {
  readonly #variants: HlsVariant[] = [];
  readonly #renditions: HlsRendition[] = [];
  #pending: HlsAttributes | undefined;

  /** Whether the next URI is that of a variant. */
  get awaitsUri(): boolean {
    return this.#pending !== undefined;
  }

  /** Takes a tag, if it is one of its own. */
  tag(name: string, value: string): void {
    if (name === "EXT-X-STREAM-INF") this.#pending = readHlsAttributes(value);
    else if (name === "EXT-X-MEDIA") this.#rendition(readHlsAttributes(value));
  }

  /** Takes the URI of the variant that the last tag was about. */
  uri(uri: string, offset: number): void {
    if (this.#variants.length === MAX_VARIANTS)
      throw new DecodeError("HLS manifest", offset, `more than ${MAX_VARIANTS} variants`);
    this.#variants.push(variantOf(uri, this.#pending!));
    this.#pending = undefined;
  }

  finish(): HlsMaster {
    return { kind: "master", variants: this.#variants, renditions: this.#renditions };
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
      isAutoSelect: attributes.get("AUTOSELECT") === "YES",
      isForced: attributes.get("FORCED") === "YES",
      channels: hlsNumber(attributes.get("CHANNELS")?.split("/", 1)[0]),
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
    frameRate: hlsNumber(attributes.get("FRAME-RATE")),
    codecs: codecs.filter((codec) => codec !== ""),
    audioGroup: attributes.get("AUDIO") || undefined,
    videoGroup: attributes.get("VIDEO") || undefined,
    subtitleGroup: attributes.get("SUBTITLES") || undefined,
  };
}
