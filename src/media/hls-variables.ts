import { DecodeError } from "../base/errors.ts";
import { readHlsAttributes } from "./hls-attributes.ts";

/** Values of the variables of a manifest (RFC 8216bis 4.3), by name. */
export type HlsValues = ReadonlyMap<string, string>;

/** Where a manifest takes variables from. */
export interface HlsVariableSources {
  /** The URL of the manifest, for `QUERYPARAM`. */
  readonly url?: string | undefined;
  /** The variables of the master manifest, for `IMPORT`. */
  readonly imported?: HlsValues | undefined;
}

const MAX_VARIABLES = 100;
/** Limits in characters of what is substituted in a line, and in a manifest: short lines with a long value would take gigabytes. */
const MAX_LINE_LENGTH = 64 * 1024;
const MAX_SUBSTITUTED_LENGTH = 4 * 1024 * 1024;
const FORMAT = "HLS manifest";

/** The variables of one manifest (`#EXT-X-DEFINE`, RFC 8216bis 4.4.2.3). */
export class HlsVariables {
  readonly #values = new Map<string, string>();
  readonly #sources: HlsVariableSources;
  #substitutedLength = 0;

  constructor(sources: HlsVariableSources) {
    this.#sources = sources;
  }

  get values(): HlsValues {
    return this.#values;
  }

  /** Processes `#EXT-X-DEFINE`. Throws `DecodeError` if the variable has no value, or is defined twice. */
  define(text: string, offset: number): void {
    const attributes = readHlsAttributes(text);
    const [imported, parameter] = [attributes.get("IMPORT"), attributes.get("QUERYPARAM")];
    const name = attributes.get("NAME") ?? imported ?? parameter ?? "";
    const value =
      imported !== undefined
        ? this.#sources.imported?.get(imported)
        : parameter !== undefined
          ? queryParameter(this.#sources.url, parameter)
          : attributes.get("VALUE");
    if (value === undefined)
      throw new DecodeError(FORMAT, offset, `the variable "${name.slice(0, 40)}" has no value`);
    if (this.#values.has(name) || this.#values.size === MAX_VARIABLES)
      throw new DecodeError(
        FORMAT,
        offset,
        `the variable "${name.slice(0, 40)}" is defined twice, or too many are`,
      );
    this.#values.set(name, value);
  }

  /** Replaces `{$name}` by the values. Throws `DecodeError` if a variable is not defined. */
  replace(line: string, offset: number): string {
    if (!line.includes("{$")) return line;
    let length = 0;
    return line.replace(/\{\$([\w-]+)\}/g, (_, name: string) => {
      const value = this.#values.get(name);
      if (value === undefined)
        throw new DecodeError(FORMAT, offset, `the variable "${name.slice(0, 40)}" is not defined`);
      length += value.length;
      this.#substitutedLength += value.length;
      if (length > MAX_LINE_LENGTH)
        throw new DecodeError(FORMAT, offset, `a line has more than ${MAX_LINE_LENGTH} characters`);
      if (this.#substitutedLength > MAX_SUBSTITUTED_LENGTH)
        throw new DecodeError(FORMAT, offset, "the values of variables are too long");
      return value;
    });
  }
}

function queryParameter(url: string | undefined, name: string): string | undefined {
  const query = /\?([^#]*)/.exec(url ?? "")?.[1];
  for (const pair of query?.split("&") ?? []) {
    const equals = pair.indexOf("=");
    if ((equals < 0 ? pair : pair.slice(0, equals)) === name && equals >= 0)
      return decoded(pair.slice(equals + 1));
  }
  return undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
