import { SluiceError } from "../base/errors.ts";

/** The command line cannot be read: the message says what came and what was expected. */
export function usageError(message: string): SluiceError {
  return new SluiceError("bad_configuration", message);
}
