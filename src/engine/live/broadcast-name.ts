import { SluiceError } from "../../base/errors.ts";
import { encodeUtf8 } from "../../base/utf8.ts";

const MAX_NAME_LENGTH = 64;
/** File systems take 255 bytes, and something stands behind the name. */
const MAX_NAME_BYTES = 200;
/** Names that Windows gives to devices, in every folder. */
const DEVICES = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
const STRANGE = /[^\p{L}\p{N}\p{M}._ -]/gu;

/** The name of a broadcast as it names a folder. Throws `bad_parameter`. */
export function checkedBroadcastName(text: string): string {
  const name = text.normalize("NFC");
  const isFine =
    name.length > 0 &&
    name.length <= MAX_NAME_LENGTH &&
    encodeUtf8(name).length <= MAX_NAME_BYTES &&
    name.search(STRANGE) < 0 &&
    // Hidden files, the folder above, and what some systems cut off.
    /^[^. ](?:.*[^. ])?$/u.test(name) &&
    !name.includes("  ") &&
    !DEVICES.test(name);
  if (!isFine)
    throw new SluiceError(
      "bad_parameter",
      `name: expected at most ${MAX_NAME_LENGTH} letters, digits, "-", "_", "." and single spaces, and none of the last two at an end, not ${JSON.stringify(text.slice(0, 100))}`,
    );
  return name;
}

/** A name for a broadcast made of any text; always the same for the same text. */
export function broadcastNameFrom(text: string): string {
  let name = text.normalize("NFC").replace(STRANGE, " ").replace(/ +/g, " ").slice(0, MAX_NAME_LENGTH);
  while (encodeUtf8(name).length > MAX_NAME_BYTES) name = name.slice(0, -1);
  name = name.replace(/^[. ]+|[. ]+$/g, "");
  return name === "" || DEVICES.test(name) ? `stream ${name}`.trim() : name;
}
