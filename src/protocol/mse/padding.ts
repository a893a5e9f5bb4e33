import { readU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { MSE_MAX_PAD_BYTES, MSE_VC_BYTES } from "../../wire/peer/mse.ts";
import type { MseDependencies } from "./contract.ts";

/** Returns 0 to 512 random bytes, each length with the same probability, as common clients do. */
export function randomPadding({ randomBytes }: MseDependencies): Uint8Array {
  // The bias of 65536 / 513 is below 1 %, too small to be observed.
  return randomBytes(readU16(randomBytes(2), 0) % (MSE_MAX_PAD_BYTES + 1));
}

/** Reads the length of the padding from the two bytes at `at`. Throws `DecodeError` if it is above 512. */
export function readPaddingBytes(head: Uint8Array, at: number): number {
  const length = readU16(head, at);
  if (length > MSE_MAX_PAD_BYTES)
    throw new DecodeError("MSE", MSE_VC_BYTES + 4, `padding of ${length} bytes`);
  return length;
}
