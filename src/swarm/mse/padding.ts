import { readU16 } from "../../base/bytes.ts";
import { MSE_MAX_PAD_BYTES } from "../../wire/mse.ts";
import type { MseTools } from "./contract.ts";

/** Padding of a length and contents that nobody can foresee: 0 to 512 bytes, each length as likely, as others do it. */
export function randomPadding({ randomBytes }: MseTools): Uint8Array {
  // 65536 / 513 leaves a bias of less than one in a hundred, which hides in what one sees of connections.
  return randomBytes(readU16(randomBytes(2), 0) % (MSE_MAX_PAD_BYTES + 1));
}
