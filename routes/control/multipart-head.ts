import { DecodeError } from "../../src/base/errors.ts";

/** The parsed header of a part. */
interface PartHead {
  readonly name: string;
  /** Present if the part is a file; empty if the user chose none. */
  readonly filename?: string;
  readonly mime: string;
}

const MAX_NAME_CHARACTERS = 200;
const MAX_FILENAME_CHARACTERS = 1000;

/** Parses the header lines of a part (RFC 7578 4.2, 4.4, 4.7) that begin at `offset` of the body. Throws `DecodeError`. */
export function readPartHead(bytes: Uint8Array, offset: number): PartHead {
  const headers = new Map<string, string>();
  for (const line of decodeLines(bytes, offset)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name))
      throw malformed(offset, "expected lines of the form name: value");
    if (headers.has(name)) throw malformed(offset, `duplicate ${name}`);
    headers.set(name, line.slice(colon + 1).trim());
  }
  const encoding = headers.get("content-transfer-encoding")?.toLowerCase() ?? "binary";
  if (!["binary", "7bit", "8bit"].includes(encoding))
    throw malformed(offset, "content-transfer-encoding is not supported (RFC 7578 4.7)");
  const disposition = headers.get("content-disposition") ?? "";
  const parameters = dispositionParameters(disposition, offset);
  const name = parameters.get("name");
  if (!name) throw malformed(offset, 'expected content-disposition: form-data; name="…"');
  const filename = extended(parameters.get("filename*")) ?? parameters.get("filename");
  if (name.length > MAX_NAME_CHARACTERS || (filename?.length ?? 0) > MAX_FILENAME_CHARACTERS)
    throw malformed(offset, "the name or file name of a field is too long");
  const mime = headers.get("content-type") ?? "text/plain";
  return filename === undefined ? { name, mime } : { name, filename, mime };
}

function decodeLines(bytes: Uint8Array, offset: number): string[] {
  // File names come in the encoding of the page. Invalid UTF-8 is replaced, because the name is only displayed.
  const text = new TextDecoder().decode(bytes);
  if (text === "") return [];
  // After the split at CRLF this also finds a lone CR or LF.
  const lines = text.split("\r\n");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
  if (lines.some((line) => /[\x00-\x08\x0a-\x1f\x7f]/.test(line)))
    throw malformed(offset, "the header of a part contains a control character");
  return lines;
}

/** Parses `form-data; name="a"; filename="b"`. Values are tokens, or quoted with `\"` or `%22` for a quote. */
function dispositionParameters(text: string, offset: number): ReadonlyMap<string, string> {
  const [type] = /^[^;]*/.exec(text)!;
  if (type.trim().toLowerCase() !== "form-data")
    throw malformed(offset, "expected content-disposition: form-data");
  const parameters = new Map<string, string>();
  const pattern = /\s*;\s*([a-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))\s*/iy;
  pattern.lastIndex = type.length;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (!match) throw malformed(offset, "invalid content-disposition");
    const name = match[1]!.toLowerCase();
    if (parameters.has(name)) throw malformed(offset, `duplicate ${name}`);
    parameters.set(name, match[2] === undefined ? (match[3] ?? "") : unescaped(match[2]));
  }
  return parameters;
}

/** Browsers send `%22`, `%0D` and `%0A` for a quote, CR and LF; older clients send a backslash before a quote. */
function unescaped(value: string): string {
  return value.replace(
    /\\(["\\])|%(22|0d|0a)/gi,
    (_, quoted: string | undefined, code: string | undefined) =>
      quoted !== undefined ? quoted : code === "22" ? '"' : " ",
  );
}

/** Parses `filename*=UTF-8''na%C3%AFve.m3u` (RFC 8187), which some clients send although RFC 7578 4.2 forbids it. */
function extended(value: string | undefined): string | undefined {
  const match = /^utf-8'[^']*'(.*)$/i.exec(value ?? "");
  if (!match) return undefined;
  try {
    return decodeURIComponent(match[1]!);
  } catch {
    return undefined;
  }
}

function malformed(offset: number, message: string): DecodeError {
  return new DecodeError("multipart form", offset, message);
}
