import type { ControlMethod } from "./method.ts";

/** The methods of this section of the interface. */
export const serviceMethods: readonly ControlMethod[] = [];
