import { percentDecode } from "../base/percent.ts";
import { decodeUtf8 } from "../base/utf8.ts";

/** Characters; nobody reads more. */
const MAX_TITLE_LENGTH = 300;
/** Names that say nothing: of scripts, and of what every stream calls its manifest. */
const EMPTY_NAME = /^(?:index|playlist|master|manifest|stream|live|chunklist|mono|video|get|file|download)$/i;
const EXTENSION = /\.(?:[a-z][a-z0-9]{1,4}|3gp|7z|mp[34])$/i;

/** A title for people out of a text of strangers: one line, nothing that is not to be seen, not too long. */
export function plainTitle(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  return plain.length <= MAX_TITLE_LENGTH
    ? plain
    : plain.slice(0, MAX_TITLE_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

/** What a URL calls its content: its file without the extension, else its folder, else its host. */
export function urlTitle(text: string): string {
  const { pathname, hostname } = new URL(text);
  for (const part of pathname.split("/").reverse()) {
    const name = plainTitle(decodeUtf8(percentDecode(part)).replace(EXTENSION, ""));
    if (name !== "" && !EMPTY_NAME.test(name)) return name;
  }
  return hostname;
}
