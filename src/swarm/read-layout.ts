import { equalBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { SwarmInput, SwarmLayout, SwarmSetup } from "./contract.ts";

/** The layout that metadata says, or why there is none. Where the metadata came with one from elsewhere (`given`), that is it. */
export function readLayout(
  setup: SwarmSetup,
  infoBytes: Uint8Array,
  given: (SwarmInput & { kind: "info" }) | undefined,
): SwarmLayout | string {
  if (given?.layout && equalBytes(given.infoBytes, infoBytes)) return given.layout;
  try {
    return setup.readInfo(infoBytes);
  } catch (thrown) {
    if (thrown instanceof DecodeError) return thrown.message;
    throw thrown;
  }
}
