import { SluiceError } from "../../base/errors.ts";
import { encodeUtf8 } from "../../base/utf8.ts";

const MAX_NAME_LENGTH = 64;
/** File systems allow 255 bytes, and the name gets a suffix. */
const MAX_NAME_BYTES = 200;
/** Names that Windows reserves for devices in every folder. */
const DEVICES = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
const STRANGE = /[^\p{L}\p{N}\p{M}._ -]/gu;

/** Returns the normalized name of a broadcast, which is also a folder name. Throws `bad_parameter`. */
export function checkedBroadcastName(text: string): string {
  const name = text.normalize("NFC");
  const isFine =
    name.length > 0 &&
    name.length <= MAX_NAME_LENGTH &&
    encodeUtf8(name).length <= MAX_NAME_BYTES &&
    name.search(STRANGE) < 0 &&
    // Excludes hidden files, the parent folder, and characters that some systems remove at the end.
    /^[^. ](?:.*[^. ])?$/u.test(name) &&
    !name.includes("  ") &&
    !DEVICES.test(name);
  if (!isFine)
    throw new SluiceError(
      "bad_parameter",
      `name: expected at most ${MAX_NAME_LENGTH} letters, digits, "-", "_", "." and single spaces, without "." or a space at either end, not ${JSON.stringify(text.slice(0, 100))}`,
    );
  return name;
}

/** Makes a valid broadcast name from any text, always the same one for the same text. */
export function broadcastNameFrom(text: string): string {
  let name = text.normalize("NFC").replace(STRANGE, " ").replace(/ +/g, " ").slice(0, MAX_NAME_LENGTH);
  while (encodeUtf8(name).length > MAX_NAME_BYTES) name = name.slice(0, -1);
  name = name.replace(/^[. ]+|[. ]+$/g, "");
  return name === "" || DEVICES.test(name) ? `stream ${name}`.trim() : name;
}
