import { SluiceError } from "../base/errors.ts";
import type { Inspector } from "./contract.ts";

/** The inspector of this engine. */
export function createInspector(): Inspector {
  const refuse = () => Promise.reject(new SluiceError("unsupported_content", "cannot be looked at"));
  return { describe: refuse, keep: refuse, contentIdOf: refuse, analyze: refuse, search: async () => [] };
}
