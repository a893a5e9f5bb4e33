import { readU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { MSE_MAX_PAD_BYTES, MSE_VC_BYTES } from "../../wire/mse.ts";
import type { MseTools } from "./contract.ts";

/** Padding of a length and contents that nobody can foresee: 0 to 512 bytes, each length as likely, as others do it. */
export function randomPadding({ randomBytes }: MseTools): Uint8Array {
  // 65536 / 513 leaves a bias of less than one in a hundred, which hides in what one sees of connections.
  return randomBytes(readU16(randomBytes(2), 0) % (MSE_MAX_PAD_BYTES + 1));
}

/** How long the padding behind their choice or offer is, by the two bytes at `at`. Throws `DecodeError` where no padding is
 * so long. */
export function readPaddingBytes(head: Uint8Array, at: number): number {
  const length = readU16(head, at);
  if (length > MSE_MAX_PAD_BYTES) throw new DecodeError("MSE", MSE_VC_BYTES + 4, "padding that is too long");
  return length;
}
