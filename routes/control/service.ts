import type { ControlMethod } from "./method.ts";
import { accessMethods } from "./service-access.ts";
import { analysisMethods } from "./service-analysis.ts";
import { contentMethods } from "./service-content.ts";
import { extraImageMethods, imageMethods } from "./service-images.ts";
import { listMethods, taskMethods } from "./service-lists.ts";
import { playerMethods } from "./service-players.ts";
import { statusMethods, versionMethods } from "./service-status.ts";

/** The methods of this section of the interface, in its order, and then those that deployed clients call besides. */
export const serviceMethods: readonly ControlMethod[] = [
  ...accessMethods,
  ...playerMethods,
  ...contentMethods,
  ...imageMethods,
  ...analysisMethods,
  ...statusMethods,
  ...listMethods,
  ...versionMethods,
  ...taskMethods,
  ...extraImageMethods,
];
